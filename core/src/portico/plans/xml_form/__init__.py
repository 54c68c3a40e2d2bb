"""The XML form of plans, as Semantic Kernel's sequential planner wrote it.

`docs/reference/plan-xml.md` has the rules, and where they differ from Semantic Kernel's on purpose.
"""

from portico.plans.xml_form.reading import XmlPlan, plan_from_xml, read_plan
from portico.plans.xml_form.writing import plan_to_xml
from portico.plans.xml_form.written import Mend

__all__ = ["Mend", "XmlPlan", "plan_from_xml", "plan_to_xml", "read_plan"]

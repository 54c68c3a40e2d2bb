"""What authors of packages need beside the ports: registrations, settings, schemas and helpers."""

from __future__ import annotations

from portico._schema.strict import StrictForm, strict_form, within_limits
from portico._schema.validate import PlainSchemaValidator

__all__ = ["PlainSchemaValidator", "StrictForm", "strict_form", "within_limits"]

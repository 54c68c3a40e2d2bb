"""The FunctionSource on a folder of plans."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from portico import Function, FunctionPlugin
from portico.errors import PorticoError
from portico.plans import Plan, plan_function
from portico.plugins import Services
from portico.ports import SchemaValidator
from portico_basics.plan_folder._files import LostPlan, PlanFile, read_plans
from portico_basics.plan_folder.config import PlanFilesSettings

_MOST_TOLD = 10
_log = logging.getLogger("portico_basics.plan_folder")


class PlanFiles:
    """Make a function of each plan in a folder, named after its file.

    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "greet.json").write_text('{"version": 1, "goal": "Greet", "steps": [], "result": {"value": "Hi"}}')
    71
    >>> source = PlanFiles(PlanFilesSettings(path=folder))
    >>> [function.full_name for function in asyncio.run(source.load("recipes"))]
    ['recipes-greet']

    ``lost`` are the plans that could not be used, after a load; the plugin's description and a warning in the log say
    so too. The plans may call each other, but not in a circle. Whether they do, and whether the functions that they
    call are there, is seen by the check of a plan that leads to them.
    """

    def __init__(self, settings: PlanFilesSettings, services: Services | None = None) -> None:
        self._settings = settings
        self._services = services
        self.lost: tuple[LostPlan, ...] = ()

    async def load(self, name: str) -> FunctionPlugin:
        """Read the folder and return its plans as the plugin ``name``.

        Raises ``ConfigurationError`` when the folder cannot be read or holds no plans.
        """
        settings = self._settings
        plans, lost = await asyncio.to_thread(read_plans, settings.path, settings.maximum_file_bytes)
        siblings = {f"{name}-{each.name}": each.plan for each in plans}
        validator = self._validator()
        functions = []
        for each in plans:
            try:
                functions.append(_function(name, each, siblings, validator))
            except (PorticoError, ValueError, TypeError) as error:
                lost.append(LostPlan(each.place, str(error)))
        self.lost = tuple(lost)
        description = f"The plans of {settings.path.name or settings.path}."
        if lost:
            told = _told(lost, len(functions))
            description += f" {told}"
            _log.warning("functions.%s, %s: %s", name, settings.path, told)
        return FunctionPlugin(name, tuple(functions), description)

    def _validator(self) -> SchemaValidator | None:
        """Return the validator that the kernel uses too; None leaves core its own."""
        if self._services is None or not self._services.names(SchemaValidator):
            return None
        try:
            return self._services.get(SchemaValidator)
        except PorticoError as error:
            _log.warning("Core's own schema validator is used for the input of plans. %s", error)
            return None


def _function(plugin: str, file: PlanFile, siblings: Mapping[str, Plan], validator: SchemaValidator | None) -> Function:
    description = " ".join(file.plan.goal.split()) or f"Run the plan {file.name}."
    return plan_function(
        file.name, file.plan, plugin=plugin, description=description, siblings=siblings, validator=validator
    )


def _told(lost: Sequence[LostPlan], usable: int) -> str:
    shown = "; ".join(str(one).partition("\n")[0].rstrip(".") for one in lost[:_MOST_TOLD])
    more = f"; and {len(lost) - _MOST_TOLD} more" if len(lost) > _MOST_TOLD else ""
    return f"{len(lost)} of {usable + len(lost)} plans are lost: {shown}{more}."

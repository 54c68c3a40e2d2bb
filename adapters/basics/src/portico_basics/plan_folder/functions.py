"""The FunctionSource on a folder of plans."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portico import FunctionPlugin
from portico.errors import ConfigurationError, PlanFormatError, PorticoError
from portico.plans import Plan, plan_from_json, plan_function
from portico.plugins import Services
from portico.ports import SchemaValidator
from portico_basics.config import MOST_BYTES, PlanFolderSettings
from portico_basics.files import Lost, read_text
from portico_basics.plan_folder.store import SAVED_NAME

_KINDS = (".json", ".xml")
_DIGEST = re.compile(r"-[0-9a-f]{24}$")


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan as it was read: the function's name, the file's name, the plan."""

    name: str
    place: str
    plan: Plan


def read_plans(folder: Path) -> tuple[list[PlanFile], list[Lost]]:
    """Read all plans of a folder, in the order of their names; raises ``ConfigurationError`` for the folder itself."""
    try:
        files = sorted(each.name for each in folder.iterdir() if each.name.lower().endswith(_KINDS))
    except OSError as error:
        raise ConfigurationError(f"The folder of plans {folder} cannot be read: {error.strerror or error}.") from error
    names = [file for file in files if not file.startswith(".")]
    if not names:
        raise ConfigurationError(f"The folder {folder} holds no plans: no file ends in {' or '.join(_KINDS)}.")
    found: dict[str, PlanFile] = {}
    lost: list[Lost] = []
    for file in names:
        try:
            name = _function_name(file)
            if name in found:
                raise ValueError(f"it would be the function {name!r}, as {found[name].place} is")
            found[name] = PlanFile(name, file, _read(folder / file))
        except (ValueError, PlanFormatError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            lost.append(Lost(file, reason or str(error)))
    return list(found.values()), lost


def _function_name(file: str) -> str:
    """Return the name of the function: the file's, without the digest of a saved plan, with '_' for other signs."""
    stem = file.rpartition(".")[0]
    if SAVED_NAME.fullmatch(file):
        stem = _DIGEST.sub("", stem)
    name = re.sub(r"[^0-9A-Za-z_]+", "_", stem).strip("_")
    if not name:
        raise ValueError("its name has no ASCII letter or digit")
    return name


def _read(path: Path) -> Plan:
    text = read_text(path, MOST_BYTES)
    if path.suffix.lower() == ".xml":
        from portico.plans import XmlPlan

        return XmlPlan.read(text, goal=path.stem.replace("_", " ").replace("-", " ")).plan
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if isinstance(document, dict) and "portico_saved_plan" in document:
        document = document.get("plan")
    return plan_from_json(document)


_log = logging.getLogger("portico_basics.plan_folder")


class PlanFiles:
    """Make a function of each plan in a folder, named after its file.

    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "greet.json").write_text('{"version": 1, "goal": "Greet", "steps": [], "result": {"value": "Hi"}}')
    71
    >>> source = PlanFiles(PlanFolderSettings(path=folder))
    >>> [function.full_name for function in asyncio.run(source.load("recipes"))]
    ['recipes-greet']

    ``lost`` are the plans that could not be used, after a load; a warning in the log names them too. The plans may call
    each other, but not in a circle.
    """

    def __init__(self, settings: PlanFolderSettings, services: Services | None = None) -> None:
        self._settings = settings
        self._services = services
        self.lost: tuple[Lost, ...] = ()

    async def load(self, name: str) -> FunctionPlugin:
        """Read the folder and return its plans as the plugin ``name``.

        Raises ``ConfigurationError`` when the folder cannot be read or holds no plans, and for a schema validator that
        cannot be used.
        """
        path = self._settings.path
        plans, lost = await asyncio.to_thread(read_plans, path)
        siblings = {f"{name}-{each.name}": each.plan for each in plans}
        validator: SchemaValidator | None = None
        if self._services is not None and self._services.names(SchemaValidator):
            validator = self._services.get(SchemaValidator)
        functions = []
        for each in plans:
            description = " ".join(each.plan.goal.split()) or f"Run the plan {each.name}."
            try:
                functions.append(
                    plan_function(
                        each.name,
                        each.plan,
                        plugin=name,
                        description=description,
                        siblings=siblings,
                        validator=validator,
                    )
                )
            except (PorticoError, ValueError, TypeError) as error:
                lost.append(Lost(each.place, str(error)))
        self.lost = tuple(lost)
        if lost:
            _log.warning("functions.%s, %s: %s", name, path, Lost.report(lost, len(functions), "plans"))
        return FunctionPlugin(name, tuple(functions), f"The plans of {path.name or path}.")

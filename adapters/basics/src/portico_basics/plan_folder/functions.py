"""The FunctionSource on a folder of plans."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portico import Function, FunctionPlugin, FunctionSpec
from portico.errors import ConfigurationError, PlanFormatError, PorticoError
from portico.plans import Plan, plan_from_json, plan_function
from portico.plugins import Services
from portico.ports import SchemaValidator
from portico_basics.config import MOST_BYTES, PlanFolderSettings
from portico_basics.files import Lost, read_text
from portico_basics.plan_folder.store import SAVED_NAME, read_saved

_KINDS = (".json", ".xml")
_SETS = re.compile(r"""(?:setContextVariable|appendToResult)\s*=\s*["']\s*\$?(\w+)""", re.IGNORECASE)
_WHOLE = re.compile(r"""=\s*(["'])\$([^\W\d]\w*)\1""")
_DIGEST = re.compile(r"-[0-9a-f]{24}$")


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan as it was read: the function's name, the file's name, the plan, and its text where that is XML."""

    name: str
    place: str
    plan: Plan
    xml: str = ""


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
            found[name] = PlanFile(name, file, *_read(folder / file))
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


def _read(path: Path) -> tuple[Plan, str]:
    text = read_text(path, MOST_BYTES)
    if path.suffix.lower() == ".xml":
        return _read_xml(text, path.name), text
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if isinstance(document, dict) and "portico_saved_plan" in document:
        saved = read_saved(text.encode())
        if saved.edited:
            _log.warning("The plan in %s was edited since it was saved.", path)
        document = saved.plan
    return plan_from_json(document), ""


def _read_xml(text: str, place: str, catalogue: Mapping[str, FunctionSpec] | None = None) -> Plan:
    """Read a plan as XML; a whole value ``$name`` that no step sets is a member of its input."""
    from portico.plans import XmlPlan

    goal = place.rpartition(".")[0].replace("_", " ").replace("-", " ")
    kept = {"input", *map(str.lower, _SETS.findall(text))}
    names = {name.lower(): name for _, name in _WHOLE.findall(text) if name.lower() not in kept}
    return XmlPlan.read(text, catalogue, goal=goal, input=dict.fromkeys(names.values()) or None).plan


def _make_function(
    file: PlanFile, plugin: str, siblings: Mapping[str, Plan], validator: SchemaValidator | None
) -> Function:
    """Return the function of a plan; what XML means is read anew with the functions of the kernel that it enters."""

    def make(plan: Plan) -> Function:
        description = " ".join(plan.goal.split()) or f"Run the plan {file.name}."
        return plan_function(
            file.name, plan, plugin=plugin, description=description, siblings=siblings, validator=validator
        )

    made = make(file.plan)
    if not file.xml:
        return made
    return Function(
        made.name,
        made.callable,
        plugin=plugin,
        description=made.description,
        parameters=made.parameters,
        returns=made.returns,
        effects=True,
        bind=lambda kernel: make(_read_xml(file.xml, file.place, kernel.specs)).bound(kernel),
    )


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
            try:
                functions.append(_make_function(each, name, siblings, validator))
            except (PorticoError, ValueError, TypeError) as error:
                lost.append(Lost(each.place, str(error)))
        self.lost = tuple(lost)
        if lost:
            _log.warning("functions.%s, %s: %s", name, path, Lost.report(lost, len(functions), "plans"))
        return FunctionPlugin(name, tuple(functions), f"The plans of {path.name or path}.")

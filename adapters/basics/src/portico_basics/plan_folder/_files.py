"""Reading a folder of plans: plans in JSON, saved plans, plans in XML."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portico.errors import ConfigurationError, PlanFormatError
from portico.plans import Plan, plan_from_json
from portico_basics.plan_folder._wire import SAVED_NAME

_KINDS = (".json", ".xml")
_DIGEST = re.compile(r"-[0-9a-f]{24}$")


@dataclass(frozen=True, slots=True)
class LostPlan:
    """A plan that is no function: its file, and why."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan as it was read: the function's name, the file's name, the plan."""

    name: str
    place: str
    plan: Plan


def read_plans(folder: Path, most: int) -> tuple[list[PlanFile], list[LostPlan]]:
    """Read all plans of a folder, in the order of their names; raises ``ConfigurationError`` for the folder itself."""
    try:
        names = sorted(path.name for path in folder.iterdir() if _is_plan(path.name))
    except OSError as error:
        raise ConfigurationError(f"The folder of plans {folder} cannot be read: {error.strerror or error}.") from error
    if not names:
        raise ConfigurationError(f"The folder {folder} holds no plans: no file ends in {' or '.join(_KINDS)}.")
    found: dict[str, PlanFile] = {}
    lost: list[LostPlan] = []
    for file in names:
        try:
            name = _function_name(file)
            if name in found:
                raise ValueError(f"it would be the function {name!r}, as {found[name].place} is")
            found[name] = PlanFile(name, file, _read(folder / file, most))
        except (ValueError, PlanFormatError, OSError) as error:
            said = error.strerror if isinstance(error, OSError) else None
            lost.append(LostPlan(file, said or str(error)))
    return list(found.values()), lost


def _is_plan(name: str) -> bool:
    return name.lower().endswith(_KINDS) and not name.startswith(".")


def _function_name(file: str) -> str:
    """Return the function's name: the file's, each sign that no name has as '_'; a saved plan's without its digest."""
    stem = file.rpartition(".")[0]
    if SAVED_NAME.fullmatch(file):
        stem = _DIGEST.sub("", stem)
    name = re.sub(r"[^0-9A-Za-z_]+", "_", stem).strip("_")
    if not name:
        raise ValueError("its name has no letter or digit that the name of a function may have")
    return name


def _read(path: Path, most: int) -> Plan:
    with path.open("rb") as stream:
        contents = stream.read(most + 1)
    if len(contents) > most:
        raise ValueError(f"it has more than {most:,} bytes, which is maximum_file_bytes")
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8: byte {error.start} is wrong") from error
    if path.suffix.lower() == ".xml":
        from portico.plans import XmlPlan

        return XmlPlan.read_plan(text, goal=path.stem.replace("_", " ").replace("-", " "))
    try:
        document: Any = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if isinstance(document, dict) and "portico_saved_plan" in document:
        document = document.get("plan")
    return plan_from_json(document)

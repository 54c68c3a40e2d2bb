"""Saved plans to files and back: names, contents, and what is wrong with them."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from datetime import UTC, datetime
from typing import Any

from portico.ports import SavedPlan

SAVED_NAME = re.compile(r"[a-z0-9-]{1,41}-[0-9a-f]{24}\.json")
_VERSION = 1
_SLUG = 40
_DIGITS = 24
_KEYS = {"portico_saved_plan", "goal", "catalogue", "saved_at", "planner", "plan"}
_SURROGATES = re.compile("[\ud800-\udfff]")


def file_name(goal: str, catalogue: str) -> str:
    """Return the name of the file for a goal and a catalogue: words for people, a digest that tells them apart.

    >>> file_name("Tell the weather in Zürich!", "c1")
    'tell-the-weather-in-zurich-c3c754c8714b43240f9946bb.json'

    Only small ASCII letters, digits and '-': file systems differ in what else they take, and in what they hold equal.
    A goal that has no such words is called ``plan``. The digest is of 96 bits; names reserved on Windows never are
    a whole name here.
    """
    words = unicodedata.normalize("NFKD", goal[:1_000]).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", words).strip("-")[:_SLUG].strip("-") or "plan"
    # Lengths first: no two pairs are joined to one text.
    key = f"{len(goal)} {goal}{catalogue}".encode("utf-8", "surrogatepass")
    return f"{slug}-{hashlib.sha256(key).hexdigest()[:_DIGITS]}.json"


def written(saved: SavedPlan) -> bytes:
    """Return the contents of a saved plan's file. Raises ``TypeError`` or ``ValueError`` for what is not JSON."""
    moment(saved.saved_at)
    document = {
        "portico_saved_plan": _VERSION,
        "goal": saved.goal.strip(),
        "catalogue": saved.catalogue,
        "saved_at": saved.saved_at,
        "planner": saved.planner,
        "plan": dict(saved.plan),
    }
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)
    # Half a pair of surrogates has no UTF-8; in JSON it can only stand inside a string, where it has an escape.
    return (_SURROGATES.sub(lambda half: f"\\u{ord(half[0]):04x}", text) + "\n").encode()


def read_saved(contents: bytes) -> SavedPlan:
    """Read a saved plan's file. Raises ``ValueError`` that says what is wrong with it."""
    try:
        document = json.loads(contents, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(document, dict) or not document.keys() >= _KEYS:
        raise ValueError(f"it is not a saved plan, which has {', '.join(sorted(_KEYS))}")
    if document["portico_saved_plan"] != _VERSION:
        raise ValueError(f"it is of version {document['portico_saved_plan']!r:.20}; version {_VERSION} is read here")
    goal, catalogue, plan, saved_at, planner = (
        document[key] for key in ("goal", "catalogue", "plan", "saved_at", "planner")
    )
    if not all(isinstance(text, str) for text in (goal, catalogue, saved_at, planner)) or not isinstance(plan, dict):
        raise ValueError("goal, catalogue, saved_at and planner are texts, and plan is an object")
    moment(saved_at)
    return SavedPlan(goal, catalogue, plan, saved_at, planner)


def moment(text: str) -> datetime:
    """Return the moment that an ISO text means, UTC where it does not say. Raises ``ValueError``."""
    read = datetime.fromisoformat(text)
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def _no_constant(text: str) -> Any:
    raise ValueError(f"JSON has no {text}")

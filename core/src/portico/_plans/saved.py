"""A plan with what it was saved for, and the JSON of its file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_VERSION = 1
_TEXTS = ("goal", "catalogue", "saved_at", "planner")


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A plan as it was saved: its goal, a hash of the catalogue it was made for, its JSON form, and when (UTC, ISO).

    It is ``edited`` if a store finds another `digest` than it wrote: a person changed the plan, or a disk did.
    """

    goal: str
    catalogue: str
    plan: Mapping[str, Any]
    saved_at: str
    planner: str = ""
    edited: bool = field(default=False, compare=False)

    @property
    def digest(self) -> str:
        """SHA-256 of all but ``edited``, in hexadecimal; the order of keys makes no difference."""
        body = [self.goal, self.catalogue, dict(self.plan), self.saved_at, self.planner]
        return sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return what the file of a saved plan holds: its fields and the digest."""
        texts = {name: getattr(self, name) for name in _TEXTS}
        return {"portico_saved_plan": _VERSION, "digest": self.digest, **texts, "plan": dict(self.plan)}

    @classmethod
    def from_json(cls, document: object) -> SavedPlan:
        """Read what `to_json` returns, also without a digest. Raises ``ValueError`` that says what is wrong with it."""
        found = document if isinstance(document, dict) else {}
        # Before the rest, which is another in another version.
        if (version := found.get("portico_saved_plan", _VERSION)) != _VERSION:
            raise ValueError(f"it is of version {version!r:.20}; version {_VERSION} is read here")
        texts, plan = {name: found[name] for name in _TEXTS if isinstance(found.get(name), str)}, found.get("plan")
        if "portico_saved_plan" not in found or len(texts) < len(_TEXTS) or not isinstance(plan, dict):
            raise ValueError(f"a saved plan has portico_saved_plan, the texts {', '.join(_TEXTS)}, and the object plan")
        datetime.fromisoformat(texts["saved_at"])
        saved = cls(plan=plan, **texts)
        return replace(saved, edited=found.get("digest", saved.digest) != saved.digest)

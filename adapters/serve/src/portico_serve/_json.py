"""Values as JSON, in answers and events: also texts with half of a character in them, as functions may give them."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse


def to_json(value: Any) -> str:
    """Return a value as one line of ASCII: no encoding fails on it, and no reader breaks it into two."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


class JsonResponse(JSONResponse):
    """An answer in JSON."""

    def render(self, content: Any) -> bytes:
        """Return the body."""
        return to_json(content).encode()

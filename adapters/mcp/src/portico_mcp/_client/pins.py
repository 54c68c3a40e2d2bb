"""What a server offers, and what of it was approved."""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from portico.errors import ConfigurationError, StoreError

if TYPE_CHECKING:
    from portico_mcp.config import MCPSettings

_log = logging.getLogger(__name__)

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools and prompts of a server as it describes them, in JSON, and whether it has resources.

    ``lost`` has the name, which may be empty, of what else it listed, and why that cannot be used.
    """

    tools: tuple[Mapping[str, Any], ...] = ()
    prompts: tuple[Mapping[str, Any], ...] = ()
    resources: bool = False
    lost: tuple[tuple[str, str], ...] = ()

    def fingerprints(self) -> dict[str, str]:
        """Return a digest of all that the server says of each tool and prompt, by kind and name."""
        kinds = (("tool", self.tools), ("prompt", self.prompts))
        return {f"{kind} {each['name']}": fingerprint(each) for kind, listed in kinds for each in listed}

    def changes(self, now: Listing) -> Iterator[str]:
        """Yield a sentence for each tool and prompt that is new, gone or another now."""
        for kind, before, after in (("tool", self.tools, now.tools), ("prompt", self.prompts, now.prompts)):
            old, new = ({each["name"]: each for each in listed} for listed in (before, after))
            for name in dict.fromkeys([*old, *new]):
                if name not in new:
                    yield f"the {kind} {name!r} is gone"
                elif name not in old:
                    yield f"the {kind} {name!r} is new"
                elif keys := [key for key in {**old[name], **new[name]} if old[name].get(key) != new[name].get(key)]:
                    yield f"the {kind} {name!r} has another {', '.join(keys)}"


def fingerprint(said: Mapping[str, Any]) -> str:
    """Return a digest of all that a server says of a tool or prompt: a change of any word of it is a change.

    >>> fingerprint({"name": "now", "description": "Tell the time."})
    '635ae4bed8320e19'
    """
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode("utf-8", "replace")).hexdigest()[:16]


class Approvals:
    """The file with what was approved of one server, in the folder of the settings or of the user's data.

    It is of this server: another command, URL or name has another file.
    """

    def __init__(self, name: str, settings: MCPSettings) -> None:
        from platformdirs import user_data_path

        self._name = name
        server = json.dumps([settings.command, *settings.args, settings.url]).encode("utf-8", "replace")
        folder = settings.approvals or user_data_path("portico", appauthor=False) / "mcp"
        self.path = folder / f"{name}-{hashlib.sha256(server).hexdigest()[:12]}.json"

    def read(self) -> Listing | None:
        """Return what was approved; None where nothing was. Raises ``ConfigurationError`` for a damaged file."""
        from mcp_types import Prompt, Tool
        from pydantic import ValidationError

        try:
            written = json.loads(self.path.read_text("utf-8"))
            if written["version"] != _VERSION:
                raise ValueError(f"its version is {written['version']}")
            for kind, listed in ((Tool, written["tools"]), (Prompt, written["prompts"])):
                for each in listed:
                    kind.model_validate(each, by_name=False)
            # Files that were written before have none.
            lost = tuple((str(name), str(reason)) for name, reason in written.get("lost", ()))
            return Listing(tuple(written["tools"]), tuple(written["prompts"]), bool(written["resources"]), lost)
        except FileNotFoundError:
            if any(self.path.parent.glob(f"{self._name}-{'[0-9a-f]' * 12}.json")):
                words = (
                    "functions.%s: nothing is approved of this server. What was approved under its name had another "
                    "`command`, `args` or `url`. Look at its tools, and run `portico mcp approve %s`."
                )
                _log.warning(words, self._name, self._name)
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            reason = "it has another form" if isinstance(error, ValidationError) else str(error)
            raise ConfigurationError(
                f"functions.{self._name}: the approved tools in {self.path} cannot be read: {reason}. "
                f"Delete the file and run `portico mcp approve {self._name}` again."
            ) from error

    def write(self, listing: Listing) -> None:
        """Keep a listing as approved; the old file or the new one is there at any moment."""
        body = {"version": _VERSION, **asdict(listing)}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self.path.parent, delete=False, encoding="utf-8") as file:
                json.dump(body, file, indent=1)
            Path(file.name).replace(self.path)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}.") from error

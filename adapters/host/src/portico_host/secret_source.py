"""Read secrets from a variable, a file, or (with a warning) the configuration itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from portico.plugins import Secret
from portico_host.mistakes import Fault, Unfit, kind_of, unfit
from portico_host.tree import Given

EXPECTED = 'a secret: { env = "VARIABLE" } or { file = "PATH" }'
_MAXIMUM_BYTES = 65_536
_SHORTEST_SCRUBBED = 6


@dataclass(slots=True)
class SecretSource:
    """Makes `Secret`s, and remembers their values so that no message repeats one by accident."""

    environ: Mapping[str, str] = field(repr=False)
    folder: Path
    allow_files_inside: bool = False
    _values: set[str] = field(default_factory=set, repr=False)

    def make(self, value: Any) -> Secret:
        """Return the secret that a raw value stands for. Raises `Unfit`, which never holds the value."""
        if isinstance(value, Secret):
            secret = value
        elif isinstance(value, str) and value:
            secret = Secret(str(value), origin=value.origin if isinstance(value, Given) else "literal")
        elif isinstance(value, Mapping):
            secret = self._from_table(value)
        else:
            raise unfit(EXPECTED, kind_of(value) if value != "" else "an empty string")
        self._values.add(secret.reveal())
        return secret

    def scrub(self, text: str) -> str:
        """Replace any value of at least six characters that this source made; shorter ones are parts of words."""
        for value in sorted(self._values, key=len, reverse=True):
            if len(value) >= _SHORTEST_SCRUBBED:
                text = text.replace(value, "********")
        return text

    def _from_table(self, table: Mapping[str, Any]) -> Secret:
        ((key, value),) = table.items() if len(table) == 1 else ((None, None),)
        if key not in ("env", "file") or not isinstance(value, str) or not value:
            names = ", ".join(repr(name) for name in table)
            raise unfit(EXPECTED, f"a table with {names}" if names else "an empty table")
        return self._from_variable(value) if key == "env" else self._from_file(value)

    def _from_variable(self, name: str) -> Secret:
        value = self.environ.get(name)
        if not value:
            state = "empty" if value == "" else "not set"
            raise Unfit([Fault((), f"the environment variable {name} is {state}.", f"Run `export {name}=…` first.")])
        return Secret(value, origin=f"env {name}")

    def _from_file(self, name: str) -> Secret:
        try:
            # The override of a command line is relative to the working directory.
            path = ((Path.cwd() if isinstance(name, Given) else self.folder) / Path(name).expanduser()).resolve()
            if path.is_relative_to(self.folder.resolve()) and not self.allow_files_inside:
                sentence = f"the secret's file {path} lies inside the configuration's folder, which may get published."
                mend = "Move it out, or set allow_files_inside = true in [secrets]."
                raise Unfit([Fault((), sentence, mend)])
            with path.open("rb") as stream:
                content = stream.read(_MAXIMUM_BYTES + 1)
            text = content.decode().rstrip("\r\n")
        except (OSError, RuntimeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text, or its name is not a path"
        else:
            if text and len(content) <= _MAXIMUM_BYTES:
                return Secret(text, origin=f"file {name}")
            reason = "it is empty" if not text else f"it has more than {_MAXIMUM_BYTES} bytes"
        mend = "Write the secret into it, or correct its path."
        raise Unfit([Fault((), f"the secret's file {name!r} cannot be read: {reason}.", mend)])

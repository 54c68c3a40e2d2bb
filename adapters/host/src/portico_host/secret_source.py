"""Where a secret's value comes from: a variable, a file, or (with a warning) the configuration itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from portico.plugins import Secret
from portico_host.mistakes import Wrong, kind_of, unknown_word
from portico_host.tree import Given
from portico_host.typed_words import quoted

__all__ = ["EXPECTED", "SecretSource"]

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
        """Return the secret that a raw value stands for. Raises `Wrong`, which never holds the value."""
        if isinstance(value, Secret):
            secret = value
        elif isinstance(value, str):
            origin = value.origin if isinstance(value, Given) else "literal"
            if not value:
                raise Wrong(EXPECTED, "an empty string")
            secret = Secret(str(value), origin=origin)
        elif isinstance(value, Mapping):
            secret = self._from_table(value)
        else:
            raise Wrong(EXPECTED, kind_of(value))
        self._values.add(secret.reveal())
        return secret

    def scrub(self, text: str) -> str:
        """Replace any value of at least six characters that this source made; shorter ones are parts of words."""
        for value in sorted(self._values, key=len, reverse=True):
            if len(value) >= _SHORTEST_SCRUBBED:
                text = text.replace(value, "********")
        return text

    def _from_table(self, table: Mapping[str, Any]) -> Secret:
        for key in table:
            if key not in ("env", "file"):
                raise Wrong(EXPECTED, f"the key {key!r}, which {unknown_word(str(key), ('env', 'file'), 'known')}")
        if len(table) != 1:
            raise Wrong(EXPECTED, "both" if table else "an empty table")
        ((key, value),) = table.items()
        if not isinstance(value, str) or not value:
            raise Wrong(f"a string for {key!r}", kind_of(value) if value != "" else "an empty string")
        return self._from_variable(value) if key == "env" else self._from_file(value)

    def _from_variable(self, name: str) -> Secret:
        value = self.environ.get(name)
        if not value:
            state = "empty" if value == "" else "not set"
            raise Wrong(sentence=f"the environment variable {name} is {state}. Run `export {name}=…` first.")
        return Secret(value, origin=f"env {name}")

    def _from_file(self, name: str) -> Secret:
        try:
            path = Path(name).expanduser()
            if not path.is_absolute():
                path = (Path.cwd() if isinstance(name, Given) else self.folder) / path
            path = path.resolve()
            inside = path.is_relative_to(self.folder.resolve())
            if inside and not self.allow_files_inside:
                raise Wrong(
                    sentence=f"the secret's file {path} lies inside the configuration's folder, from where secrets get "
                    "published. Move it out, or set allow_files_inside = true in [secrets]."
                )
            with path.open("rb") as stream:
                content = stream.read(_MAXIMUM_BYTES + 1)
            text = content.decode().rstrip("\r\n")
        except (OSError, RuntimeError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else _reason(error)
            sentence = f"the secret's file {name!r} cannot be read: {reason}.{_mend(error, name)}"
            raise Wrong(sentence=sentence) from None
        if len(content) > _MAXIMUM_BYTES:
            raise Wrong(sentence=f"the secret's file {name!r} has more than {_MAXIMUM_BYTES} bytes.")
        if not text:
            raise Wrong(sentence=f"the secret's file {name!r} is empty.")
        return Secret(text, origin=f"file {name}")


def _mend(error: Exception, name: str) -> str:
    if isinstance(error, PermissionError):
        # The file that it was: what is written in the configuration is seen from its folder, not from the shell's.
        return f" Run `chmod u+r {quoted(str(error.filename or name))}`, as who owns it."
    return " Write the secret into it, or correct its path." if isinstance(error, FileNotFoundError) else ""


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    return "its name is not a path" if isinstance(error, ValueError) else "there is no home folder"

"""Whose the package is, as far as git knows."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from email.errors import HeaderParseError, MessageDefect
from email.headerregistry import Address
from pathlib import Path

__all__ = ["Author", "author_of_git"]

_PATIENCE = 5.0
"""Seconds for git's answer."""


@dataclass(frozen=True, slots=True)
class Author:
    """A name and an address; at least one of them is not empty.

    >>> Author("Ada Lovelace", "ada@example.org").toml
    '{ name = "Ada Lovelace", email = "ada@example.org" }'
    """

    name: str
    email: str

    @property
    def toml(self) -> str:
        """The author as an inline table of `pyproject.toml`."""
        fields = [("name", self.name), ("email", self.email)]
        # A JSON string is a TOML string too, but for the one control character that JSON leaves as it is.
        texts = [(key, json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")) for key, text in fields if text]
        return f"{{ {', '.join(f'{key} = {text}' for key, text in texts)} }}"


def author_of_git() -> Author | None:
    """Return who commits from this folder; None where git is not there or does not know."""
    git = shutil.which("git")
    if git is None:
        return None
    name, email = (_configured([git, "config", "--get", f"user.{key}"]) for key in ("name", "email"))
    # Metadata is lines: a name of two would be cut, or be taken for another field.
    name = " ".join("".join(letter if letter.isprintable() else " " for letter in name).split())
    email = email if _is_address(email) else ""
    return Author(name, email) if name or email else None


def _is_address(text: str) -> bool:
    """Tell whether build backends take it for one, which read it with this very class; they fail on any other."""
    try:
        return "@" in text and Address(addr_spec=text).addr_spec == text
    except (ValueError, IndexError, HeaderParseError, MessageDefect):
        return False


def _configured(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the words are ours
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_PATIENCE, check=False, cwd=Path.cwd()
        )
        return done.stdout.decode("utf-8").strip() if done.returncode == 0 else ""
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""

"""Read the arguments of a command, goals and JSON values, and the files that they name; write files."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from portico.errors import StoreError
from portico_cli.failures import Misused

if TYPE_CHECKING:
    from portico import Audio, File, Image

_GOAL_BYTES = 1_000_000
_ATTACHED_BYTES = 32_000_000
_VALUE_BYTES = 10_000_000


def clean_argument(argument: str) -> str:
    r"""Return an argument as text that can be encoded; bytes that are not UTF-8 become U+FFFD."""
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def read_goal(argument: str) -> str:
    """Return the goal, or the one on standard input for ``-``. Raises ``Misused`` for a blank or a huge one."""
    if argument == "-":
        goal = read_bytes("-", _GOAL_BYTES, "The goal on standard input").decode("utf-8-sig", "replace")
    else:
        goal = clean_argument(argument)
    if not goal.strip():
        raise Misused("The goal is blank. Ask something, or give `-` to read it from standard input.")
    return goal.strip()


def read_value(argument: str, option: str) -> Any:
    """Return the value of an option: JSON, a plain text, or JSON from ``@FILE`` or from standard input for ``-``.

    A value that begins like an object, an array or a string and is not JSON raises ``Misused``.
    """
    text = clean_argument(argument)
    if argument == "-" or (argument.startswith("@") and len(argument) > 1):
        name = argument.removeprefix("@")
        return load_json(read_text(name, _VALUE_BYTES, f"{option}: {name}"), option)
    if text.lstrip()[:1] in ("{", "[", '"'):
        return load_json(text, option)
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def read_attachment(name: str) -> Image | Audio | File:
    """Return a file as the part of a message that its content says: a picture, sound, or another file.

    Raises ``Misused`` for a file that cannot be read, is empty or has more than 32 MB.
    """
    from portico import Message

    path = Path(name)
    try:
        path = path.expanduser()
        size = path.stat().st_size
        if not 0 < size <= _ATTACHED_BYTES:
            raise Misused(f"{path} is empty." if not size else f"{path} has more than {_ATTACHED_BYTES:,} bytes.")
        return cast("Image | Audio | File", Message.of("user", path).content[0])
    except (OSError, ValueError, RuntimeError) as error:
        raise Misused(f"{path} cannot be attached: {getattr(error, 'strerror', None) or error}.") from error


def load_json(text: str, subject: str) -> Any:
    """Return the value of a JSON text. Raises ``Misused`` for any other text, also for NaN and Infinity."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Misused(f"{subject}: not JSON: {error}.") from error


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def read_bytes(name: str, most: int, subject: str) -> bytes:
    """Return the content of a file, or of standard input for ``-``; ``subject`` names it in errors.

    Raises ``Misused`` for a file that cannot be read or has more than ``most`` bytes.
    """
    try:
        if name == "-":
            content = sys.stdin.buffer.read(most + 1)
        else:
            with Path(name).open("rb") as stream:
                content = stream.read(most + 1)
    except (OSError, ValueError) as error:
        raise Misused(f"{subject} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if len(content) > most:
        raise Misused(f"{subject} has more than {most:,} bytes.")
    return content


def read_text(name: str, most: int, subject: str) -> str:
    """Return the text of a file, as `read_bytes` does; ``Misused`` is raised for one that is not UTF-8 too."""
    try:
        return read_bytes(name, most, subject).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Misused(f"{subject} is not UTF-8 text.") from error


def write_text(file: Path, text: str, *, private: bool = False) -> None:
    """Write a file as a whole: a kill leaves the old one or the new one. Raises ``StoreError`` if that fails.

    A ``private`` file is readable for its owner only (mode 0600). A device or a pipe is written, and never replaced.
    """
    text = text if not text or text.endswith("\n") else f"{text}\n"
    try:
        if file.exists() and not file.is_file():
            file.write_text(text, encoding="utf-8", errors="replace")
            return
        # A link stays; its target is replaced.
        target = file.resolve()
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as stream:
                stream.write(text)
            if not private:
                mask = os.umask(0)
                os.umask(mask)
                Path(temporary).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask)
            Path(temporary).replace(target)
        finally:
            with suppress(OSError):
                Path(temporary).unlink()
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror or error}.") from error

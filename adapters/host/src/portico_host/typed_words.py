"""Write a word of a command as people have to type it."""

from __future__ import annotations

import os
import re
import shlex

__all__ = ["quoted", "with_variable"]

_PLAIN_ON_WINDOWS = re.compile(r"[\w.:/\\@+~-]+")
_READ_IN_DOUBLE_QUOTES = re.compile(r'["$`\\!]')


def quoted(word: str, *, windows: bool = os.name == "nt") -> str:
    r"""Return a word as the shells here take it: as it is, in double quotes, or in the single ones of POSIX.

    Double quotes come first: they mean the same to every shell, where nothing in them is read as something else. On
    Windows nothing else quotes, and no file's name holds one.

    >>> quoted("portico-acme"), quoted("acmesdk[http]>=2"), quoted("my notes")
    ('portico-acme', '"acmesdk[http]>=2"', '"my notes"')
    >>> print(quoted("$HOME, sweet home", windows=False), quoted(r"C:\My notes", windows=True))
    '$HOME, sweet home' "C:\My notes"
    """
    if windows:
        return word if _PLAIN_ON_WINDOWS.fullmatch(word) else f'"{word}"'
    plain = shlex.quote(word)
    return plain if plain == word or _READ_IN_DOUBLE_QUOTES.search(word) else f'"{word}"'


def with_variable(variable: str, value: str, command: str, *, windows: bool = os.name == "nt") -> str:
    """Return a command with its own environment variable, as the shells here take it.

    ``cmd`` has no prefix for that, and PowerShell another word for `set`; this is taken by both. A blank before `&&`
    would be part of the value.

    >>> with_variable("PORTICO_DISABLE", "acme", "portico plugins", windows=False)
    'PORTICO_DISABLE=acme portico plugins'
    >>> with_variable("PORTICO_DISABLE", "acme", "portico plugins", windows=True)
    'cmd /c "set PORTICO_DISABLE=acme&& portico plugins"'
    """
    return f'cmd /c "set {variable}={value}&& {command}"' if windows else f"{variable}={value} {command}"

"""What to tell of a value that fits none of several alternatives: what is wrong with the one that was meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]

from portico_basics.jsonschema._values import kind

_TAGS = ("const", "enum")
_EXPECTED = "expected "


def alternatives_faults(tried: Sequence[list[ValidationError]], value: Any) -> Iterator[ValidationError]:
    """Yield the faults of the one alternative that may be meant, or one that tells of them all.

    Alternatives for another kind of value are not meant, nor those whose tag (a property with given values) is
    another.
    """
    fitting = [errors for errors in tried if not any(_of_another_kind(error) for error in errors)]
    if not fitting:
        names = dict.fromkeys(name for errors in tried for error in errors for name in _names(error))
        if names and all(any(_names(error) for error in errors) for errors in tried):
            # `type` still says it to an alternative further out.
            yield ValidationError(f"{_EXPECTED}{' or '.join(names)}, got {kind(value)}", validator="type")
            return
    likely = [errors for errors in fitting if not any(_is_tag(error) for error in errors)]
    meant = likely or fitting or list(tried)
    if len(meant) == 1:
        yield from meant[0]
        return
    nearest = min(meant, key=len)
    yield ValidationError(f"none of {len(tried)} alternatives fits; the nearest", context=nearest)


def _of_another_kind(error: ValidationError) -> bool:
    return error.validator == "type" and not error.relative_path


def _names(error: ValidationError) -> list[str]:
    """Return the kinds of value that an error says were expected in its place."""
    if not _of_another_kind(error) or not error.message.startswith(_EXPECTED):
        return []
    names: list[str] = error.message.removeprefix(_EXPECTED).rpartition(", got ")[0].split(" or ")
    return names


def _is_tag(error: ValidationError) -> bool:
    return error.validator in _TAGS and len(error.relative_path) == 1

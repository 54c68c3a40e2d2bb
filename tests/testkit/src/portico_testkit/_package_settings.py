"""Settings classes as a package has them: their fields, which of them are secrets, and an instance to try."""

from __future__ import annotations

import dataclasses
import re
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portico.registration import Secret

__all__ = ["SettingsField", "instance_of", "looks_secret", "settings_fields", "takes_secret"]

_SECRET_NAME = re.compile(r"(^|_)(api_?key|access_?key|secret(_?key)?|token|password|passwd|credentials?)$")


@dataclass(frozen=True, slots=True)
class SettingsField:
    """One setting: the key it has in a file, its type, whether it has to be given, what is said of it."""

    key: str
    attribute: str
    hint: Any
    required: bool
    doc: str


def settings_fields(cls: Any) -> list[SettingsField]:
    """Return the fields that the constructor of an attrs class or a dataclass takes.

    >>> @dataclass
    ... class AcmeSettings:
    ...     api_key: Secret = dataclasses.field(metadata={"doc": "The key."})
    ...     language: str = "en"
    >>> [(field.key, field.required, field.doc) for field in settings_fields(AcmeSettings)]
    [('api_key', True, 'The key.'), ('language', False, '')]

    Raises ``TypeError`` for any other class, and ``NameError`` for a type that is not there at run time.
    """
    if not isinstance(cls, type) or not (hasattr(cls, "__attrs_attrs__") or dataclasses.is_dataclass(cls)):
        raise TypeError(f"{cls!r} is neither an attrs class nor a dataclass")
    hints = typing.get_type_hints(cls, include_extras=True)
    if hasattr(cls, "__attrs_attrs__"):
        # Whoever has made the class has imported it; those who take dataclasses need not have it.
        attrs: Any = sys.modules["attr"]
        return [
            SettingsField(
                field.alias or field.name,
                field.name,
                hints.get(field.name, Any),
                field.default is attrs.NOTHING,
                _doc(field.metadata),
            )
            for field in attrs.fields(cls)
            if field.init
        ]
    return [
        SettingsField(
            field.name,
            field.name,
            hints[field.name],
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
            _doc(field.metadata),
        )
        for field in dataclasses.fields(cls)
        if field.init
    ]


def takes_secret(field: SettingsField) -> bool:
    """Return whether the setting is a ``Secret``, or may be none."""
    return Secret in _members(field.hint)


def looks_secret(field: SettingsField) -> bool:
    """Return whether it is text by the name of a secret: ``api_key``, ``access_token``, ``password``."""
    return bool(_SECRET_NAME.search(field.key)) and str in _members(field.hint)


def instance_of(cls: Any, given: Iterable[object], secret: str = "k3y-0f-the-kit") -> Any:
    """Return settings to try, with ``secret`` in each ``Secret``.

    What has to be given comes from an instance of the class among those ``given``, or is made up: text, a number, a
    path. Secrets that need not be given are there too, unless the class refuses them alone. Where a secret must have a
    form, as the URI of a database has, the instance given is taken as it is: ``secret`` may stand inside of it. Raises
    ``ValueError`` or ``TypeError`` where it takes no such values.
    """
    example = next((one for one in given if type(one) is cls), None)
    fields = settings_fields(cls)
    values: dict[str, Any] = {}
    for field in fields:
        value = None if example is None else getattr(example, field.attribute)
        if takes_secret(field) and (field.required or value is not None):
            values[field.key] = Secret(secret, origin="the kit")
        elif example is not None:
            values[field.key] = value
        elif field.required:
            values[field.key] = _made_up(field)
    more = {field.key: Secret(secret, origin="the kit") for field in fields if takes_secret(field)}
    for some in ({**values, **more}, values):
        with suppress(TypeError, ValueError):
            return cls(**some)
    return cls(**values) if example is None else example


def _made_up(field: SettingsField) -> Any:
    for kind, value in ((str, "made-up"), (Path, Path("made-up")), (bool, False), (int, 1), (float, 1.0)):
        if kind in _members(field.hint):
            return value
    raise ValueError(f"{field.key} is a {field.hint}, for which nothing can be made up")


def _members(hint: Any) -> Iterator[Any]:
    """Yield the type itself, or those of a union, without what annotates them."""
    if typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        for member in typing.get_args(hint):
            yield from _members(member)
    else:
        yield hint


def _doc(metadata: Mapping[Any, Any]) -> str:
    doc = metadata.get("doc", "")
    return doc.strip() if isinstance(doc, str) else ""

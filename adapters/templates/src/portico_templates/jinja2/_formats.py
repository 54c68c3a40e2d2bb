"""Putting values into texts, within bounds and without letting one become markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from jinja2.sandbox import SandboxedEscapeFormatter, SandboxedFormatter
from markupsafe import Markup

from portico import Trusted
from portico.errors import LimitExceeded
from portico_templates.jinja2._own_text import OwnText
from portico_templates.jinja2._rendering import RENDERING, too_large

PromptEnvironment: TypeAlias = Any  # it belongs to a module above this one


_WIDEST = 1_000
_WIDTH = re.compile(r"%(?:\([^)]*\))?[-#0 +]*(\*|[0-9]*)(?:\.(\*|[0-9]*))?")


def percent(environment: PromptEnvironment, text: str, values: Any) -> str:
    """Put values into a text by ``%``."""
    for width, precision in _WIDTH.findall(text):
        for digits in (width, precision):
            check_format("0000" if digits == "*" else digits)
    given: Iterable[Any]
    if isinstance(values, dict) and "%(" in text:
        values = {name: environment.operand(value) for name, value in values.items()}
        given = values.values()
    else:
        values = given = tuple(map(environment.operand, values if isinstance(values, tuple) else (values,)))
    if environment.marks is not None and not isinstance(text, OwnText) and any_own(given):
        text = environment.marks.OwnText.escape(text)
    made: str = text % values
    check_growth(len(made))
    return made


def formatted(
    environment: PromptEnvironment, text: str, mapping: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> str:
    """Put values into a text by ``format``, or by ``format_map`` where there is a mapping."""
    if mapping is not None:
        args, kwargs = (), mapping
    formatter = (
        _EscapeFormatter(environment, escape=text.escape) if isinstance(text, OwnText) else _Formatter(environment)
    )
    made = formatter.vformat(text, args, kwargs)
    check_growth(len(made))
    liked: str = environment.like(text, made)
    return liked


def check_growth(count: int) -> None:
    """Raise ``LimitExceeded`` for a text or list of ``count`` characters or elements, if that is too many."""
    most = RENDERING.get().settings.max_characters
    if count > most:
        raise too_large(most)


def check_format(specification: str) -> None:
    """Raise ``LimitExceeded`` for a width or precision that makes texts out of nothing."""
    digits = 0
    for letter in specification:
        digits = digits + 1 if letter.isdigit() else 0
        if digits > 3:
            raise LimitExceeded(f"A width or precision of a format is at most {_WIDEST - 1}.")


def is_own(value: object) -> bool:
    """Tell whether a value is the template's own text, or trusted as such."""
    return isinstance(value, Markup | Trusted)


def any_own(values: Iterable[object] | Mapping[str, object]) -> bool:
    """Tell whether any of these values is."""
    return any(is_own(value) for value in (values.values() if isinstance(values, Mapping) else values))


class _Formatter(SandboxedFormatter):
    _env: PromptEnvironment

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return super().convert_field(self._env.operand(value), conversion)

    def format_field(self, value: Any, format_spec: str) -> Any:
        check_format(format_spec)
        return super().format_field(value, format_spec)


class _EscapeFormatter(SandboxedEscapeFormatter, _Formatter):
    def format_field(self, value: Any, format_spec: str) -> Any:
        check_format(format_spec)
        return super().format_field(value, format_spec)

"""From Jinja2's errors to ours, with the place in the template."""

from __future__ import annotations

from types import TracebackType

from jinja2 import Template as CompiledTemplate, TemplateNotFound, TemplateSyntaxError
from jinja2.exceptions import TemplateError as JinjaError

from portico import Prompt
from portico.errors import LimitExceeded, PorticoError, TemplateError


class Refused(Exception):
    """What a template may not do, or cannot: the message for its author, not yet the place."""


def not_compiled(error: Exception, source: str, name: str) -> PorticoError:
    """Return the error of a template that cannot be read."""
    if isinstance(error, PorticoError):
        return error
    if isinstance(error, TemplateSyntaxError):
        message = error.message or "this cannot be read."
        advice = " A variable is written {{ name }} here." if message.startswith("unexpected char '$'") else ""
        return _at_line(_sentence(message) + advice, source, error.lineno, name)
    if isinstance(error, RecursionError | MemoryError | SyntaxError | OverflowError):
        # Python's compiler has its own bounds: twenty blocks inside one another, for one.
        return LimitExceeded(f"{name}: the template is nested too deeply to be compiled ({_said(error)}).")
    return TemplateError(f"{name}: the template cannot be compiled. {_said(error)}")


def not_rendered(error: Exception, template: CompiledTemplate, source: str, name: str) -> PorticoError:
    """Return the error of a template that cannot be rendered."""
    if isinstance(error, PorticoError):
        return error
    if isinstance(error, RecursionError | MemoryError):
        return LimitExceeded(f"{name}: the template nests or calls itself too deeply ({type(error).__name__}).")
    if isinstance(error, TemplateNotFound):
        wanted = " or ".join(map(repr, getattr(error, "templates", None) or [error.name]))
        message = f"There is no partial {wanted}. The settings partials and folder give a template some."
    elif isinstance(error, Refused):
        message = str(error)
    else:
        message = _sentence(_said(error) if not isinstance(error, JinjaError) else error.message or "")
    place = _place(error)
    if place is None:
        return TemplateError(f"{name}: {message}")
    found, line = place
    if isinstance(error, TemplateSyntaxError) and error.name:
        # A partial is compiled when it is first needed.
        return not_compiled(error, error.source or "", error.name)
    if found.name is not None and found is not template:
        name = found.name
        source = getattr(found.environment, "sources", {}).get(name, "")
    return _at_line(message, source, line, name)


def _place(error: BaseException) -> tuple[CompiledTemplate, int] | None:
    """Return the template and line in which an error arose, the innermost."""
    place = None
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        template = trace.tb_frame.f_globals.get("__jinja_template__")
        if isinstance(template, CompiledTemplate):
            place = template, template.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return place


def _at_line(message: str, source: str, line: int, name: str) -> TemplateError:
    """Return the error of a line: Jinja2 knows no column."""
    lines = source.split("\n")
    line = min(max(line, 1), len(lines))
    shown = lines[line - 1]
    at = sum(len(before) + 1 for before in lines[: line - 1]) + len(shown) - len(shown.lstrip())
    return Prompt.fault(message, source, at, len(shown.strip()), name=name)


def _sentence(message: str) -> str:
    message = message[:1].upper() + message[1:]
    return message if message.endswith((".", "!", "?")) else f"{message}."


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__

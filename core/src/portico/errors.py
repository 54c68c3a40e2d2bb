"""Every error that Portico raises on purpose.

A message says what failed, whose it is and what to do. An adapter turns errors of vendors into these and keeps the
original as ``__cause__``. Programmer mistakes stay ``ValueError`` and ``TypeError``.

::

    PorticoError
    ├── ConfigurationError            a file, key, environment variable or secret is wrong
    ├── PluginError                   an installed package cannot be used
    │   ├── PluginNotInstalled        nothing registered under that name
    │   ├── PluginBroken              its import or a hook raised, or it is for another version of a port
    │   └── PluginConflict            two distributions registered one name
    ├── FunctionError
    │   ├── FunctionNotFound          with the nearest names
    │   ├── ArgumentsInvalid          every fault at once: where, expected, got
    │   └── FunctionFailed            the function raised; the cause is kept
    ├── SchemaUnsupported             a JSON Schema keyword or Python type that Portico does not support
    ├── UnsupportedOption             a service does not support an option, or a source a filter
    ├── ServiceError                  a service failed, or did not answer
    │   ├── ServiceUnavailable        no connection, or a failure on its side
    │   ├── ServiceTimeout            no answer in time
    │   ├── AuthenticationFailed      the key is missing, wrong or not allowed
    │   ├── AccessRefused             an address must not be reached; the key is not the reason
    │   ├── RateLimited               too many requests; ``retry_after`` seconds when known
    │   ├── QuotaExceeded             the quota of the account is used up
    │   ├── ResponseInvalid           the answer has another form than agreed
    │   ├── ContentRefused            the model refused, or a filter of the service
    │   └── ContextOverflow           the request is too long for the model
    ├── StoreError                    a file or database of Portico cannot be read or written
    │   ├── StoreBusy                 another process holds it
    │   ├── StoreUnavailable          it cannot be reached now; an action may have happened or not
    │   └── StoreDamaged              its content is damaged; an index can be built again
    ├── TemplateError                 a prompt template, with line and column
    ├── PlanError
    │   ├── PlanFormatError           a document is not a plan
    │   ├── PlanInvalid               the check found errors; ``findings`` lists them
    │   ├── PlanStale                 its functions have changed; ``changes`` says how
    │   └── StepFailed                a step raised; the cause is kept
    ├── RunError                      a run of the journal cannot continue
    │   └── RunNotFound               no run has this name; the nearest names are given
    ├── ThreadBusy                    another turn is running on a thread, the conversation of an agent
    ├── ThreadFormatError             a document is not a thread; the place in it is given
    └── LimitExceeded                 a limit of Portico was reached; the message names it
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_LISTED = 8


def nearest(word: str, known: Sequence[str], *, count: int = 3) -> tuple[str, ...]:
    """Return the known words nearest to ``word`` by difflib's ratio, without regard to case."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    # Of three letters one may be wrong (2/3). At 0.6 "weekday" is near to "day", a part of it, and "openai" to "nope".
    close = get_close_matches(folded := word[:200].casefold(), list(by_folded), count)
    near = get_close_matches(folded, close, count, 0.65)
    return tuple(by_folded[each] for each in close if each in near or folded in each or each in folded)


class PorticoError(Exception):
    """The base class of all errors of Portico."""


class ConfigurationError(PorticoError):
    """A setting is wrong. The message names the file or variable, the key and what was expected."""


class PluginError(PorticoError):
    """An installed package cannot be used."""


class PluginNotInstalled(PluginError):
    """Nothing is registered under the chosen name."""


class PluginBroken(PluginError):
    """The import or a hook of a package raised an error, the ``__cause__``; or it is for another version of a port."""


class PluginConflict(PluginError):
    """Two distributions registered the same name for one port."""


class FunctionError(PorticoError):
    """A function could not be called."""


class FunctionNotFound(FunctionError):
    """No function has this name, or several may be meant; ``nearest`` has those, or the nearest names.

    With ``offered=False`` there is such a function, but a model must not call it now. Names are compared only when
    ``nearest`` is read, because templates look up many words that are not functions.
    """

    name: str = ""
    _known: tuple[str, ...] = ()
    meant: tuple[str, ...] = ()
    _offered: bool = True

    def __init__(
        self, name: str, known: Sequence[str] = (), *, meant: Sequence[str] = (), offered: bool = True
    ) -> None:
        super().__init__(name)
        self.name = name
        self._known = tuple(known)
        self.meant = tuple(meant)
        self._offered = offered

    @cached_property
    def nearest(self) -> tuple[str, ...]:
        """The functions that may be meant, the nearest first."""
        return self.meant or nearest(self.name, self._known)

    def __str__(self) -> str:
        if self.meant:
            return f"{self.name!r} may be any of {', '.join(self.meant)}. Give the whole name."
        advice = "There are no functions to call."
        if self.nearest:
            advice = f"Nearest: {', '.join(self.nearest)}."
        elif known := self._known:
            more = "; `portico functions` lists them." if self._offered else " that can be called."
            advice = f"There are {len(known)} functions" if len(known) > 1 else "There is one function"
            advice += f": {', '.join(known)}." if len(known) <= _LISTED else more
        what = "There is no function {!r}." if self._offered else "The function {!r} is not offered in this turn."
        return f"{what.format(self.name)} {advice}"


class ArgumentsInvalid(FunctionError):
    """Arguments do not fit a function; ``faults`` has a sentence for each fault."""

    def __init__(self, function: str, faults: Sequence[str]) -> None:
        self.function = function
        self.faults = tuple(faults)
        super().__init__(f"The arguments do not fit {function}: {'; '.join(self.faults)}.")


class FunctionFailed(FunctionError):
    """A function raised an error, which is the ``__cause__``."""

    def __init__(self, function: str, cause: BaseException) -> None:
        self.function = function
        super().__init__(f"The function {function} failed: {type(cause).__name__}: {cause}".removesuffix(": "))


class SchemaUnsupported(PorticoError):
    """Portico does not support a JSON Schema keyword or a Python type."""


class UnsupportedOption(PorticoError):
    """A service does not support an option, or a source a filter; the message names what it takes. Nothing was sent."""


class ServiceError(PorticoError):
    """A service failed, or did not answer."""


class ServiceUnavailable(ServiceError):
    """The service could not be reached or failed on its side."""


class ServiceTimeout(ServiceError):
    """No answer came within the time allowed."""


class AuthenticationFailed(ServiceError):
    """The service did not accept the key, or the key may not do this."""


class AccessRefused(ServiceError):
    """An address must not be reached: it is not public, or robots.txt or a server forbids it."""


class RateLimited(ServiceError):
    """The service asks for fewer requests; ``retry_after`` is in seconds, or None."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class QuotaExceeded(ServiceError):
    """The account has no quota left for the day, the month or the money."""


class ResponseInvalid(ServiceError):
    """The service's answer has another form than agreed; ``text`` is the text of the reply."""

    def __init__(self, message: str, *, text: str = "") -> None:
        self.text = text
        super().__init__(message)


class ContentRefused(ServiceError):
    """The model refused to answer, or a filter stopped the question or the answer; the message has the words."""


class ContextOverflow(ServiceError):
    """The request is longer than the model's context."""


class StoreError(PorticoError):
    """A file or a database that Portico keeps cannot be read or written."""


class StoreBusy(StoreError):
    """Another process holds the file, the run or the lock."""


class StoreUnavailable(StoreError):
    """A store cannot be reached now, or did not answer in time: an action may have happened or not."""


class StoreDamaged(StoreError):
    """The stored content is damaged; the message names the file and what to do."""


class TemplateError(PorticoError):
    """A prompt template is wrong; ``line`` and ``column`` count from 1."""

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None) -> None:
        self.line = line
        self.column = column
        super().__init__(message)


class PlanError(PorticoError):
    """Something is wrong with a plan."""


class PlanFormatError(PlanError):
    """A document is not a plan; the message gives the place inside it, ``line`` and ``column`` of a text from 1."""

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None) -> None:
        self.line = line
        self.column = column
        super().__init__(message)


class PlanInvalid(PlanError):
    """A plan failed its check; ``findings`` says where and why."""

    def __init__(self, findings: Sequence[object]) -> None:
        self.findings = tuple(findings)
        lines = "\n".join(f"  {finding}" for finding in self.findings)
        super().__init__(f"The plan cannot run:\n{lines}")


class PlanStale(PlanError):
    """Functions of a plan have changed since it was made; ``changes`` has a sentence for each."""

    def __init__(self, changes: Sequence[str]) -> None:
        self.changes = tuple(changes)
        lines = "\n".join(f"  {change}" for change in self.changes)
        super().__init__(f"The plan was made for other functions than there are now:\n{lines}\nMake a new plan.")


class StepFailed(PlanError):
    """A step of a plan failed; ``__cause__`` is why.

    Where a step inside it failed, the message names the innermost one: "Step a/b failed: …" for the step ``b`` of the
    plan that ``a`` runs, and "Step a, step b failed: …" where ``b`` is in another run. ``step`` is the outer one.

    >>> str(StepFailed("a", StepFailed("a/b", StepFailed("c", ValueError("no")))))
    'Step a/b, step c failed: no'
    """

    def __init__(self, step: str, cause: BaseException) -> None:
        self.step = step
        self.path: tuple[str, ...] = (step,)
        """The steps that lead to the innermost one, one for each run."""
        self.reason = str(cause)
        if isinstance(cause, StepFailed):
            inside = cause.path[0].startswith((f"{step}/", f"{step}["))
            self.path = cause.path if inside else (step, *cause.path)
            self.reason = cause.reason
        super().__init__(f"Step {', step '.join(self.path)} failed: {self.reason}")


class RunError(PorticoError):
    """A run of the journal cannot continue: it has its outcome, or for another reason. The message says what to do."""


class RunNotFound(RunError):
    """The journal has no run of this name; ``nearest`` has the nearest names."""

    def __init__(self, run: str, known: Sequence[str] = ()) -> None:
        self.run = run
        self.nearest = nearest(run, known)
        advice = f"It has {len(known)}; `portico runs` lists them." if known else "It has none."
        if self.nearest:
            advice = f"Nearest: {', '.join(self.nearest)}."
        super().__init__(f"The journal has no run {run!r}. {advice}")


class ThreadBusy(PorticoError):
    """Another turn is running on a thread, and this one must not wait, or would wait for ever."""


class ThreadFormatError(PorticoError):
    """A document is not a thread; the message gives the place inside it."""


class LimitExceeded(PorticoError):
    """A limit of Portico was reached; the message names the limit and its value.

    Where it is a limit of a turn, ``messages`` are those that the turn added, with errors for open calls, and ``usage``
    is what it cost.
    """

    def __init__(self, message: str, *, messages: Sequence[object] = (), usage: object = None) -> None:
        self.messages = tuple(messages)
        self.usage = usage
        super().__init__(message)

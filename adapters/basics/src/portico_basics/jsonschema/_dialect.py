"""JSON Schema 2020-12 as the vendor has it, with Portico's settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]
from jsonschema.validators import extend  # type: ignore[import-untyped]

from portico.plugins import Fault
from portico_basics.jsonschema._formats import FORMATS
from portico_basics.jsonschema._keywords import keywords
from portico_basics.jsonschema._run import Run, Runs, TooMuch
from portico_basics.jsonschema._schema import META, prepare
from portico_basics.jsonschema.config import JsonschemaSettings


class Dialect:
    """Compiles schemas, all by one class of the vendor's with keywords of ours."""

    def __init__(self, settings: JsonschemaSettings) -> None:
        self._settings = settings
        self._runs = Runs()
        self._annotations = frozenset(settings.annotations)
        self._formats = FORMATS if settings.formats else None
        own = keywords(Draft202012Validator.VALIDATORS, self._runs, self._formats, settings.maximum_pattern_text)
        self._kind: Any = extend(Draft202012Validator, own)

    def compile(self, schema: Any) -> Callable[[Any], list[str]]:
        """Return what checks values against a schema, which must be a copy of the caller's own."""
        prepared = prepare(schema, self._annotations, self._formats)
        runs, limit = self._runs, self._settings.maximum_steps
        validator = self._kind(prepared.schema, registry=META)

        def validate(value: Any) -> list[str]:
            # What a dynamic reference means depends on the way to it, so that nothing may be taken as known.
            runs.now = Run(limit, None if prepared.dynamic else {}, prepared.patterns)
            try:
                told = (sentence for error in validator.iter_errors(value) for sentence in _sentences(error))
                return list(dict.fromkeys(told))
            except RecursionError:
                return ["$: nested too deeply to be checked"]
            except TooMuch:
                return [f"$: too large or too entangled to be checked: it takes more than {limit:,} steps"]
            finally:
                del runs.now

        return validate


def _sentences(error: ValidationError) -> Iterator[str]:
    where = Fault.place(list(error.absolute_path))
    if error.context:
        inner = "; ".join(sentence for child in error.context for sentence in _sentences(child))
        yield f"{where}: {error.message}: {inner}"
    else:
        yield f"{where}: {error.message}"

"""A form of JSON documents that is read by a function and described by a JSON Schema: both must take the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import jsonschema

__all__ = ["DescribedForm"]


class DescribedForm:
    """Compare what reads a document with the schema that is published for it.

    >>> def read(document):
    ...     if not isinstance(document, str):
    ...         raise ValueError("a text is expected")
    ...     if len(document) > 100:
    ...         raise ValueError("the text is too long")
    >>> form = DescribedForm(read, {"type": "string"}, ValueError, beyond=lambda message: "too long" in message)
    >>> form.check("Noon.")
    >>> form.check(12)
    >>> form.accepted("Noon."), form.accepted(12), form.accepted("Noon" * 100)
    (True, False, None)

    ``refusal`` is what ``read`` raises for a document that it does not take. ``beyond`` tells by the message of a
    refusal whether a bound is meant that no schema can say; there the two need not agree. ``validator`` is that of
    the schema, which is of the draft 2020-12.
    """

    def __init__(
        self,
        read: Callable[[Any], object],
        schema: Mapping[str, Any],
        refusal: type[Exception],
        *,
        beyond: Callable[[str], bool] = lambda message: False,
    ) -> None:
        self._read, self._refusal, self._beyond = read, refusal, beyond
        self.validator = jsonschema.Draft202012Validator(schema)

    def accepted(self, document: Any) -> bool | None:
        """Say whether it is read; None for what is refused by a bound that the schema does not say."""
        try:
            self._read(document)
        except self._refusal as error:
            return None if self._beyond(str(error)) else False
        return True

    def check(self, document: Any) -> None:
        """Raise ``AssertionError`` where one takes a document and the other does not."""
        ours, theirs = self.accepted(document), self.validator.is_valid(document)
        if ours is None or ours == theirs:
            return
        shown = json.dumps(document, default=repr)[:2_000]
        differ = "takes what the schema does not" if ours else "refuses what the schema takes"
        raise AssertionError(f"what reads it {differ}: {shown}")

"""A form and its schema are compared in both directions, but for the bounds that no schema can say."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.described_form import DescribedForm

NAMES = {"type": "array", "items": {"type": "string"}}


class Refused(Exception):
    pass


def read(document: Any) -> None:
    if not isinstance(document, list):
        raise Refused("a list is expected")
    if len(document) > 2:
        raise Refused("there are too many")


FORM = DescribedForm(read, NAMES, Refused, beyond=lambda message: "too many" in message)


@pytest.mark.parametrize("document", [[], ["a"], "a", {}, ["a", "b", "c"], [1, 2, 3]])
def test_where_they_agree_or_need_not_nothing_is_said(document: Any) -> None:
    FORM.check(document)


def test_what_only_the_reader_takes_is_told() -> None:
    with pytest.raises(AssertionError, match=r"what reads it takes what the schema does not: \[1\]"):
        FORM.check([1])


def test_what_only_the_schema_takes_is_told() -> None:
    with pytest.raises(AssertionError, match=r"what reads it refuses what the schema takes: \[\"a\", \"b\", \"c\"\]"):
        DescribedForm(read, NAMES, Refused).check(["a", "b", "c"])


def test_any_other_error_of_the_reader_comes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        DescribedForm(lambda document: 1 / document, {}, Refused).check(0)

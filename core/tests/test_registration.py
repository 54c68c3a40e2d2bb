"""Registrations are checked when made; a Secret is never seen."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import pprint
import traceback
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st

from portico._plugins.registration import Registration, Secret

VALUE = st.text(min_size=6).filter(lambda text: text not in "Secret(literal)" + "*" * 99 and text.strip())


@dataclasses.dataclass(frozen=True)
class Settings:
    api_key: Secret
    keys: dict[str, Secret]


def shown(secret: Secret) -> list[str]:
    """Everything by which a value usually gets into a log."""
    settings = Settings(secret, {"a": secret})
    try:
        raise ValueError("no", secret, settings)
    except ValueError as error:
        trace = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
        said = str(error)
    return [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret!r:>40}",
        f"{secret:>40}",
        "%s %r" % (secret, secret),  # noqa: UP031 - one of the ways
        "{:*^30}".format(secret),  # noqa: UP032 - one of the ways
        repr(settings),
        repr(dataclasses.asdict(settings)),
        repr(copy.deepcopy(settings)),
        pprint.pformat(settings),
        json.dumps(dataclasses.asdict(settings), default=str),
        said,
        trace,
    ]


@given(VALUE)
def test_a_secret_is_never_shown(value: str) -> None:
    for text in shown(Secret(value)):
        # What was drawn may stand in the words around it by chance.
        if value in text:
            assume(value not in "\n".join(shown(Secret("\x00\x01\x02"))))
        assert value not in text


@given(VALUE, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_a_secret_is_never_serialised(value: str, protocol: int) -> None:
    for thing in (Secret(value), Settings(Secret(value), {})):
        with pytest.raises(TypeError, match="not serialised"):
            pickle.dumps(thing, protocol)
    with pytest.raises(TypeError):
        json.dumps(Secret(value))
    with pytest.raises(TypeError):
        Secret(value).__getstate__()


def test_secrets_are_equal_by_value() -> None:
    assert Secret("a") == Secret("a", origin="file")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a", origin="env A")}) == 1


def registration(**changes: Any) -> Registration:
    return Registration(**{"name": "acme", "factory": "acme.search:Search", "summary": "Search Acme.", **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"name": ""},
        {"name": "a b"},
        {"name": "a.b"},
        {"name": "a\n"},
        {"factory": "acme.search"},
        {"factory": "acme:search:Search"},
        {"settings": "acme.config"},
        {"summary": " "},
        {"summary": "two\nlines"},
    ],
)
def test_a_malformed_registration_is_a_mistake_at_once(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        registration(**changes)

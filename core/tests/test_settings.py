"""Settings of services are checked where they are read, in words for people, and without showing what is secret."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from portico._plugins.registration import Secret, ValueForm


@attrs.frozen
class Acme:
    api_key: Secret = attrs.field(default=Secret("k"), validator=ValueForm.service_key("https://acme.example/keys"))
    base_url: str = attrs.field(default="https://acme.example", validator=ValueForm.service_address("https://host/v1"))
    safe_search: str | None = attrs.field(
        default=None, validator=attrs.validators.optional(ValueForm.one_of("off", "strict"))
    )
    country: str = attrs.field(default="DE", validator=ValueForm("[A-Z]{2}", "two letters, as in 'DE'"))


@pytest.mark.parametrize(
    "fine",
    [
        {"base_url": "http://127.0.0.1:8080/v1/"},
        {"base_url": "https://[::1]/v1"},
        {"api_key": Secret("sk-_.~+/=")},
        {"safe_search": "off"},
    ],
)
def test_what_can_be_is_taken(fine: dict[str, Any]) -> None:
    Acme(**fine)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"api_key": Secret(" ")}, "api_key is empty; keys are made at https://acme.example/keys"),
        ({"api_key": Secret("a\nb")}, "a line break"),
        ({"api_key": Secret("a b")}, "a blank"),
        ({"api_key": Secret("schlüssel")}, "no key has"),
        ({"base_url": ""}, "base_url is of the form https://host/v1, not ''"),
        ({"base_url": "acme.example"}, "not 'acme.example'"),
        ({"base_url": "ftp://acme.example"}, "of the form https://host/v1"),
        ({"base_url": "https://acme.example/#top"}, "of the form"),
        ({"base_url": "https://acme.example/a b"}, "of the form"),
        ({"base_url": "https://acme.example:99999"}, "no address"),
        ({"base_url": "https://acme..example"}, "no address"),
        ({"base_url": "https://acme.example/\0"}, "is of the form"),
        ({"base_url": "https://acme.example:0"}, "of the form"),
        ({"base_url": "https://[::1"}, "no address"),
        ({"safe_search": "on"}, "safe_search takes 'off' or 'strict', not 'on'"),
        ({"country": "Germany"}, "country takes two letters, as in 'DE', not 'Germany'"),
        ({"country": "DE\n"}, "country takes"),
    ],
)
def test_what_cannot_be_is_told_with_the_setting_and_what_it_takes(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))) as caught:
        Acme(**wrong)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "https://user:s3cret@acme.example",
        "https://s3cret@acme.example",
        "https://:s3cret@acme.example",
        "https://acme.example/?key=s3cret",
        "https://user:s3cret@[::1",
        "https://user:s3cret@acme.example:99999",
        "ftp://user:s3cret@acme.example",
    ],
)
def test_what_may_be_secret_in_an_address_is_not_shown(address: str) -> None:
    with pytest.raises(ValueError, match="base_url") as caught:
        Acme(base_url=address)
    assert "s3cret" not in str(caught.value)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4), st.text())
def test_one_of_some_values_is_one_of_them(values: list[str], value: str) -> None:
    form = ValueForm.one_of(*values)
    assert all(form.fits(each) for each in values)
    assert form.fits(value) == (value in values)
    assert all(repr(each) in form.words for each in values)

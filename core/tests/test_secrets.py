"""Secrets are masked however a service writes them back."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, strategies as st

from portico.plugins import Secret

WRITINGS: dict[str, Callable[[str], str]] = {
    "address": lambda text: quote(text, safe=""),
    "form": quote_plus,
    "html": html.escape,
    "html of PHP": lambda text: html.escape(text).replace("&#x27;", "&#039;"),
    "html of Handlebars": lambda text: html.escape(text).replace("=", "&#x3D;").replace("`", "&#x60;"),
    "json": lambda text: json.dumps(text)[1:-1],
    "json as it is": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "json of Go": lambda text: json.dumps(text)[1:-1].replace("<", "\\u003c").replace("&", "\\u0026"),
}


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), st.sampled_from(sorted(WRITINGS)), st.booleans())
def test_a_secret_is_masked_in_every_writing(middle: str, name: str, in_address: bool) -> None:
    secret = f"sEcr3T{middle}k3yEnd"
    written = WRITINGS[name](secret)
    written = quote(written, safe="") if in_address else written
    assert "sEcr3T" not in Secret.redact(f"The key {written} is wrong.", [Secret(secret)])


@pytest.mark.parametrize("odd", ["\\", "%5c", "\\%5c", "&amp;", "&#38;", "%25"])
@pytest.mark.parametrize("start", ['\\\\"', '\\"\\"', '"<>', "&&"])
def test_a_text_that_is_nearly_a_secret_takes_little_time(odd: str, start: str) -> None:
    """The time limit of each test holds it: where each place is tried again and again it takes minutes."""
    Secret.redact(odd * (64_000 // len(odd)), [Secret(start + "s3cret" * 3)])

"""Replies say what they cost where the price is set or published, and nothing where it is not."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from portico import Usage
from portico_wire.prices import Prices
from portico_wire.settings import PRICED, ConnectionSettings

OPENAI = "https://api.openai.com/v1"
COUNTS = st.integers(0, 100_000)
DOLLARS = st.floats(0, 100)


def prices(model: str = "gpt-4o-mini", base_url: str = OPENAI, **price: float) -> Prices:
    return Prices(ConnectionSettings(model=model, base_url=base_url, price=price))


@given(st.fixed_dictionaries(dict.fromkeys(PRICED, DOLLARS)), COUNTS, COUNTS, COUNTS, COUNTS)
def test_a_price_that_is_set_counts_each_token_once(price, fresh, cached, stored, written):
    usage = Usage(fresh + cached + stored, written, cached, 0, stored)
    each = zip(PRICED, (fresh, written, cached, stored), strict=True)
    expected = sum(price[kind] * tokens for kind, tokens in each) / 1_000_000
    counted = prices(**price).add(usage, "any-model").cost
    assert counted == (pytest.approx(expected) if usage != Usage() else None)


def test_a_published_price_is_found_by_address_and_model():
    found = prices()
    assert found.known
    whole = found.add(Usage(1_000_000, 1_000_000), "gpt-4o-mini-2024-07-18").cost
    cached = found.add(Usage(1_000_000, 1_000_000, 1_000_000), "gpt-4o-mini-2024-07-18").cost
    assert whole is not None
    assert cached is not None
    assert 0 < cached < whole


def test_counts_that_cannot_be_have_no_cost_and_leave_the_price_known():
    found = prices()
    odd = Usage(10, 5, cached_tokens=11)
    assert found.add(odd, "gpt-4o-mini").cost is None
    assert found.add(Usage(10, 5), "gpt-4o-mini").cost
    assert prices(input=1, output=0).add(odd, "any-model").cost == pytest.approx(11 / 1_000_000)


@pytest.mark.parametrize(("model", "base_url"), [("gpt-4o-mini", "http://127.0.0.1:8080/v1"), ("my-model", OPENAI)])
def test_elsewhere_and_for_other_models_nothing_is_said(model, base_url):
    unknown = prices(model, base_url)
    assert not unknown.known
    assert unknown.add(Usage(10, 5), model) == Usage(10, 5)


@pytest.mark.parametrize(
    "price", [{"input": 1.0}, {"input": 1, "output": 2, "thinking": 3}, {"input": -1, "output": 2}]
)
def test_half_a_price_is_refused(price):
    with pytest.raises(ValueError, match="price"):
        prices(**price)

"""What the rows of a database hold of a journal: all of it comes back, and what cannot be held is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._ports.run_store import Lease
from portico._runs import rows
from portico._runs.journal import RunState, entry
from portico._runs.rows import Rows
from portico.errors import StoreError

TEXTS = st.text(st.characters(codec=None, categories=None) | st.sampled_from(["\0", "\ud800", "'"]), max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=6))
def test_an_entry_comes_back_as_it_was_from_one_line_of_ascii(written: dict[str, Any]) -> None:
    text = Rows.encode("r1", written)
    assert text.isascii()
    assert "\n" not in text
    assert "\0" not in text
    back = Rows.decode(text)
    assert back == written
    assert json.dumps(back) == json.dumps(written), "1 is not 1.0, and keys keep their order"


@given(TEXTS)
def test_any_string_is_a_name_and_stays_on_its_line_in_messages(name: str) -> None:
    assert Rows.decode_name(Rows.encode_name(name)) == name
    shown = Rows.shown_name(name)
    assert shown
    assert shown.isprintable()
    assert shown == name or json.loads(json.dumps(shown)).isascii()
    assert shown in str(Rows.stale(Lease(name, "me", 7)))


@given(TEXTS, TEXTS)
def test_two_names_are_never_the_same_bytes(one: str, other: str) -> None:
    assert (Rows.encode_name(one) == Rows.encode_name(other)) == (one == other)


@pytest.mark.parametrize(
    "wrong",
    [{"n": float("nan")}, {"n": float("inf")}, {"n": object()}, {"n": {1, 2}}, {("a", 1): 2}],
    ids=["not a number", "infinite", "an object", "a set", "a key"],
)
def test_what_is_no_json_is_refused_with_the_name_of_the_run(wrong: dict[Any, Any]) -> None:
    with pytest.raises(StoreError, match=r"^An entry of the run 'r\\n1' is not JSON: ") as caught:
        Rows.encode("r\n1", wrong)
    assert caught.value.__cause__ is not None


@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=3), st.data())
def test_a_changed_byte_or_a_cut_is_noticed_wherever_it_is(written: dict[str, Any], data: st.DataObject) -> None:
    text = Rows.encode("r1", written).encode()
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != text[at]))
    for damaged in (text[:at] + bytes([other]) + text[at + 1 :], text[:at]):
        with pytest.raises(ValueError, match=r"^is no"):
            Rows.decode(damaged.decode("utf-8", "surrogateescape"))


def test_an_entry_without_a_checksum_is_read_as_it_was_written_before() -> None:
    assert Rows.decode('{"type":"plan","n":1.0}') == {"type": "plan", "n": 1.0}
    assert Rows.decode(Rows.encode("r1", {"crc32": "its own"})) == {"crc32": "its own"}


def test_what_goes_round_in_a_circle_or_too_deep_is_refused() -> None:
    circle: dict[str, Any] = {}
    circle["inside"] = circle
    deep: Any = []
    for _ in range(200_000):
        deep = [deep]
    for wrong in (circle, {"deep": deep}):
        with pytest.raises(StoreError, match="is not JSON"):
            Rows.encode("r1", wrong)
    while deep:
        deep = deep[0]


def test_an_entry_that_is_too_long_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_MAXIMUM_CHARACTERS", 1_000)
    assert Rows.encode("r1", {"t": "x" * (1_000 - len('{"t":""}'))})
    with pytest.raises(StoreError, match=r"run r1 has 1,001 characters; the journal takes 1,000\. Let the step write"):
        Rows.encode("r1", {"t": "x" * (1_001 - len('{"t":""}'))})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        (b"\xff", "is no JSON"),
        (None, "is no JSON"),
        (7, "is no JSON"),
        ("[" * 200_000, "is no JSON"),
        ("7", "is no object"),
        ("[]", "is no object"),
        ("null", "is no object"),
    ],
    ids=["empty", "half", "bytes", "nothing", "a number", "deep", "JSON of a number", "a list", "null"],
)
def test_what_was_not_written_so_is_told(text: object, words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}$"):
        Rows.decode(text)


OUTCOMES = {"answer": True, "infeasible": True, "failed": True, "held": False}


@given(
    st.lists(
        st.sampled_from(
            [entry("outcome", kind=kind, text="", reason="", missing=[]) for kind in OUTCOMES]
            + [entry("resumed", planner="p"), entry("interrupted"), entry("approved")]
        ),
        max_size=6,
    )
)
def test_a_run_has_ended_where_its_last_outcome_says_so_and_nobody_took_it_up_since(
    entries: list[dict[str, Any]],
) -> None:
    ended = False
    for each in entries:
        before = ended
        if each["type"] == "outcome":
            ended = OUTCOMES[each["kind"]]
        elif each["type"] == "resumed":
            ended = False
        assert Rows.ended([each]) in (ended, None)
        assert Rows.ended([each]) is not None or ended == before
    assert (Rows.ended(entries) or False) == ended
    if entries and entries[-1]["type"] == "outcome":
        state = RunState.of([entry("pursuit", goal="g", planner="p"), *entries]).state
        assert (state in ("done", "infeasible", "failed")) == ended

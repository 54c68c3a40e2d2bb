"""The pieces that lay text out."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from rich.console import Console
from rich.style import Style
from rich.text import Text

from portico.plans import Each, Event, From, Step
from portico.ports import IndexProgress, IndexReport
from portico.search import TextSearchResult
from portico_cli.commands.search import result_lines, snippet
from portico_cli.invocation import Invocation
from portico_cli.show.layout import markdown, place_head
from portico_cli.show.output import plain, write_json
from portico_cli.terminal.progress import Progress, update_index

ANSWER = """Two passages fit.

> Subclass `SearchConnector` and write **one** method, as the guide says in so many words. [1]

1. First step
- a bullet whose text is long enough to be wrapped at forty columns [2]

````python
```inner
x[1] = **not bold**
````
# A heading
See items[3] and [the guide](../guide.md) and [this](https://example.org/a).

This line is full, so that it goes on with what comes after
it, and ends here."""


def render(text: str, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None, record=True)
    console.print(markdown(text))
    return console.export_text().split("\n")


def test_quotes_lists_and_code_keep_their_shape_when_wrapped() -> None:
    lines = [line.strip() for line in render(ANSWER, 40)]
    assert any(line.startswith("▌ Subclass SearchConnector") for line in lines)
    assert "• a bullet whose text is long enough to" in lines
    assert "x[1] = **not bold**" in lines
    assert "A heading" in lines
    assert "this (https://example.org/a)" in " ".join(lines), "the target of a link is shown"


def test_html_in_an_answer_is_shown_as_it_is_written() -> None:
    assert "Use List<int> and <b>this</b>." in "\n".join(render("Use List<int> and <b>this</b>.", 60))


@given(st.text())
def test_plain_text_holds_no_control_characters(text: str) -> None:
    cleaned = plain(text)
    assert all(character in "\n\t" or ord(character) >= 32 for character in cleaned)
    assert not any(0x7F <= ord(character) <= 0x9F or 0xD800 <= ord(character) <= 0xDFFF for character in cleaned)
    assert plain(cleaned) == cleaned
    cleaned.encode()


# Joiners, variants of emoji and of Mongolian, and signs of other scripts, which are seen.
NEEDED = {0x200C, 0x200D, 0xFE0E, 0xFE0F, *range(0x180B, 0x1810), *range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891}
NEEDED |= {0x8E2, 0x110BD, 0x110CD, *range(0x13430, 0x13456)}


def is_hidden(letter: str) -> bool:
    """Tell whether a character is not seen: controls, formats and variation selectors that no script needs."""
    if ord(letter) in NEEDED or letter in "\n\t":
        return False
    odd = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"
    named = unicodedata.name(letter, "").startswith(("VARIATION SELECTOR", "TAG "))
    return unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") or named or letter in odd


def test_no_hidden_character_reaches_a_terminal_and_no_other_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    letters = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) not in ("Cn", "Co")]
    hidden = [letter for letter in letters if is_hidden(letter)]
    assert not set(plain("".join(hidden))) - {"\n", "\ufffd"}
    seen = "".join(letter for letter in letters if not is_hidden(letter))
    assert plain(seen) == seen
    write_json({"text": "".join(hidden)})
    written = capsys.readouterr().out
    assert not any(is_hidden(letter) for letter in written)
    assert json.loads(written)["text"] == re.sub("[\ud800-\udfff]", "\ufffd", "".join(hidden))


@pytest.mark.parametrize("text", ["👩‍❤️‍👨 ☎︎", "می‌خواهم שלום", "क्‍ष", "葛󠄀".replace("\U000e0100", "")])
def test_emoji_and_other_scripts_stay_as_they_are(text: str) -> None:
    assert plain(text) == text


@given(st.text(max_size=60), st.text(max_size=2000))
def test_a_snippet_is_a_part_of_the_passage(query: str, passage: str) -> None:
    shown = snippet(query, passage).plain
    assert len(shown) <= 285
    assert shown.removeprefix("… ").removesuffix(" …") in " ".join(plain(passage).split())


def test_a_snippet_shows_where_the_words_are_and_marks_their_forms() -> None:
    passage = "Nothing here. " * 60 + "The connectors are retried twice." + " More of nothing." * 60
    made = snippet("how is a connector retried", passage)
    marked = [made.plain[span.start : span.end] for span in made.spans]
    assert marked == ["connectors", "retried"]


def test_places_below_here_are_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = Path(os.path.realpath(tmp_path))
    link = f"{here.as_uri()}/docs/how%20to/x.md#L12"
    assert place_head("how to/x.md › A › B", link).plain == "docs/how to/x.md:12  A › B"
    assert place_head("y.pdf", f"{here.as_uri()}/y.pdf#page=3").plain == "y.pdf, page 3"


def link_of(place: Text) -> str | None:
    assert isinstance(place.style, Style)
    return place.style.link


@given(st.none() | st.text(), st.none() | st.text())
def test_any_name_and_link_have_a_place(name: str | None, link: str | None) -> None:
    place = place_head(name, link)
    opened = link_of(place)
    assert opened is None or opened.startswith(("file:", "http:", "https:"))
    assert "\n" not in place.plain


@pytest.mark.parametrize("link", ["javascript:alert(1)", "data:text/html,x", "vscode://x"])
def test_only_addresses_that_are_harmless_become_links(link: str) -> None:
    assert link_of(place_head("x", link)) is None


def test_results_without_name_or_link_are_shown_too() -> None:
    console = Console(width=40, file=io.StringIO(), record=True)
    for line in result_lines("q", [TextSearchResult("only words")]):
        console.print(line)
    assert "only words" in console.export_text()


async def test_a_log_says_once_what_an_index_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Index:
        async def update(self, *, progress: Callable[[IndexProgress], None]) -> IndexReport:
            for waiting in (None, "Another process is indexing.", "Another process is indexing.", None):
                progress(IndexProgress(1, 2, waiting=waiting))
            return IndexReport()

    lines: list[str] = []
    monkeypatch.setattr("portico_cli.terminal.progress.write_error", lines.append)
    await update_index(Invocation(), Index(), "docs")
    assert lines == ["Waiting: Another process is indexing."]


def test_a_line_break_in_a_file_name_stays_on_its_line() -> None:
    assert place_head("a\nb.md › Part", "file:///nowhere/a%0Ab.md#L3").plain == "/nowhere/a b.md:3  Part"


def test_each_loop_counts_its_own_items() -> None:
    class Display:
        def __init__(self) -> None:
            self.task_ids, self.lines, self.console = [0], list[str](), Console(file=io.StringIO())

        def update(self, task: int, *, description: str, **_: object) -> None:
            self.lines.append(description)

    progress, display = Progress(), Display()
    progress._display = display
    for id in ("s1", "s2"):
        loop = Step(id, "Mail-send", each=Each(From("s0")))
        item = Step(f"{id}[0]", "Mail-send")
        for event in (Event.StepStarted(loop, {}), Event.StepStarted(item, {}), Event.StepFinished(item, None)):
            progress(event)
        assert display.lines[-3].endswith("send…")
        assert display.lines[-1].endswith("send (1 done)…")
        progress(Event.StepFinished(loop, []))

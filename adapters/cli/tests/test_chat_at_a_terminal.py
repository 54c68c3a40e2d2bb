"""A conversation at a terminal of its own: what is typed, what is seen, and what Ctrl-C does."""

from __future__ import annotations

import json
import re
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.support.terminal import CTRL_C, CTRL_D, Shown, without_escapes

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's")

ERASED = re.compile(r"[^\r\n]*(?:\r\n\x1b\[\?25h)?\r(?:\x1b\[1A)?\x1b\[2K")
"""What was written and taken away again: the line that says what goes on."""
READY = "\x1b[?2004h> "
"""The prompt of the line editor, which has just asked the terminal to mark what is pasted."""
SEND = 'call tools-send {"text": "hey"}\n'
Talk = Callable[..., tuple[int, str]]


@pytest.fixture
def talk(folder: Path, terminal: Callable[..., Shown]) -> Talk:
    """Return what talks at a terminal: each step is typed when what it waits for was written."""
    pytest.importorskip("readline")
    (folder / "portico.toml").write_text(
        '[search.shelf]\nuse = "shelf"\n[functions.tools]\nuse = "tools"\n[chat]\nuse = "parrot"\n'
    )

    def run(*arguments: str, steps: Sequence[tuple[str, str]] = (), columns: int = 80) -> tuple[int, str]:
        done = terminal("chat", *arguments, steps=steps, columns=columns)
        shown = without_escapes(ERASED.sub("", done.written)).replace("\r", "")
        # Markdown fills its lines with spaces.
        return done.code, re.sub(r" {2,}\n", "\n", shown)

    return run


def said_before(shown: str) -> list[list[str]]:
    """Return the history that the parrot told of last, without the instructions."""
    told = shown[shown.rindex('[["') :].partition("\n\n")[0]
    return [each for each in json.loads(re.sub(r"\s+", " ", told)) if each[0] != "system"]


def sent(folder: Path) -> str:
    file = folder / "sent.txt"
    return file.read_text() if file.exists() else ""


def test_an_answer_is_followed_by_the_next_prompt_and_ctrl_d_leaves(talk: Talk) -> None:
    code, shown = talk(steps=[(READY, "Hello\n"), (READY, CTRL_D)])
    assert code == 0
    assert "You talk with parrot. /help lists commands, Ctrl-D leaves. Sources: shelf." in " ".join(shown.split())
    assert "> Hello\nYou said: Hello\n\n> \n" in shown


@pytest.mark.parametrize("columns", [24, 40, 80])
def test_an_answer_is_broken_between_words(talk: Talk, columns: int) -> None:
    text = " ".join(["retry", "door", "passage"] * 12)
    code, shown = talk(steps=[(READY, f"say {json.dumps(text)}\n"), (READY, "/quit\n")], columns=columns)
    answer = shown[: shown.rindex("\n\n> /quit")].rpartition('"')[2]
    lines = answer.strip().split("\n")
    assert code == 0
    # While it was written, its last lines were drawn again and again.
    assert " ".join(line.strip() for line in lines).endswith(text)
    assert max(map(len, lines)) <= columns


def test_what_a_model_writes_cannot_reach_the_terminal(talk: Talk) -> None:
    _, shown = talk(steps=[(READY, 'say "a \\u001b[31mred\\u0007 \\u202eb"\n'), (READY, "/quit\n")])
    assert "\na [31mred b\n" in shown


def test_each_call_is_a_line(talk: Talk) -> None:
    steps = [(READY, 'call tools-shout {"text": "hey"}\n'), (READY, "call tools-fetch\n"), (READY, "/quit\n")]
    code, shown = talk(steps=steps)
    assert code == 0
    assert re.search(r'✓  \d+\.\d s  tools-shout {"text": "hey"}\n', shown), shown
    assert re.search(r"✗  \d+\.\d s  tools-fetch.*\n  The arguments do not fit", shown), shown


@pytest.mark.parametrize("columns", [20, 40])
def test_a_call_is_one_line_on_a_narrow_terminal_too_and_why_it_failed_is_told_whole(talk: Talk, columns: int) -> None:
    long = 'call tools-shout {"text": "' + "hey " * 30 + '"}\n'
    _, shown = talk(steps=[(READY, long), (READY, "call tools-fetch\n"), (READY, "/quit\n")], columns=columns)
    # On a busy machine the line that changes stood there before.
    called = re.search(r"✓  \d+\.\d s  tools?.*…$", shown, re.MULTILINE)
    assert called, shown
    assert len(called.group()) <= columns
    why = shown[shown.index("✗ ") :].partition("\n\n")[0]
    assert "The arguments do not fit" in " ".join(why.split())
    assert max(map(len, why.splitlines())) <= columns


def test_what_an_answer_cites_is_listed_below_it(talk: Talk) -> None:
    call = 'call shelf-GetTextSearchResults {"query": "retry"}\n'
    _, shown = talk(steps=[(READY, call), (READY, "cite\n"), (READY, "/quit\n")])
    assert (
        "It is so [1], and so [77].\n\n[1] /shelf/book.md:7  Chapter\n\n"
        "! The answer cites [77], which no passage backs.\n"
    ) in shown


def test_a_call_with_effects_is_asked_for(talk: Talk, folder: Path) -> None:
    code, shown = talk(steps=[(READY, SEND), ("conversation: ", "n\n"), (READY, "/quit\n")])
    assert (code, sent(folder)) == (0, "")
    assert 'tools-send has effects. It would be called with:\n  text = "hey"\n' in shown
    assert "tools-send was not called: the user did not approve it." in shown
    talk(steps=[(READY, SEND), ("conversation: ", "y\n"), (READY, SEND), ("conversation: ", "n\n"), (READY, "/quit\n")])
    assert sent(folder) == "hey\n"
    talk(steps=[(READY, SEND), ("conversation: ", "a\n"), (READY, SEND), (READY, "/quit\n")])
    assert sent(folder) == "hey\n" * 3
    talk("--yes", steps=[(READY, SEND), (READY, "/quit\n")])
    assert sent(folder) == "hey\n" * 4


@pytest.mark.parametrize("options", [(), ("--yes",)])
def test_after_untrusted_data_a_call_is_asked_about_once_also_with_yes(
    talk: Talk, folder: Path, options: tuple[str, ...]
) -> None:
    file = folder / "portico.toml"
    file.write_text(file.read_text() + '[policy]\nmode = "enforce"\n')
    read = (READY, 'call tools-fetch {"text": "news"}\n')
    # The model calls with another word than the user's.
    unsaid = (READY, 'call tools-send {"text": "h\\u0065y"}\n')
    code, shown = talk(*options, steps=[read, unsaid, ("Let it run", "n\n"), (READY, "/quit\n")])
    assert (code, sent(folder)) == (0, ""), shown
    assert "The model calls tools-send with what you did not say yourself." in shown
    assert "read tools-fetch, which is untrusted" in " ".join(shown.split())
    code, shown = talk(*options, steps=[read, unsaid, ("Let it run", "y\n"), (READY, "/quit\n")])
    assert (code, sent(folder)) == (0, "hey\n"), shown
    assert "has effects. It would be called" not in shown


def test_ctrl_c_stops_an_answer_and_leaves_the_conversation_as_it_was(talk: Talk) -> None:
    steps = [(READY, "Hello\n"), (READY, "slow\n"), ("This", CTRL_C), (READY, "history\n"), (READY, CTRL_D)]
    code, shown = talk(steps=steps)
    assert code == 0
    assert "Stopped. The conversation is as it was before the question." in shown
    assert said_before(shown) == [["user", "Hello"], ["assistant", "You said: Hello"], ["user", "history"]]


def test_ctrl_c_at_a_question_stops_the_turn(talk: Talk, folder: Path) -> None:
    code, shown = talk(steps=[(READY, SEND), ("conversation: ", CTRL_C), (READY, "history\n"), (READY, CTRL_D)])
    assert (code, sent(folder)) == (0, "")
    assert said_before(shown) == [["user", "history"]]


def test_ctrl_c_clears_the_line_and_twice_leaves(talk: Talk) -> None:
    steps = [(READY, "abc"), ("abc", CTRL_C), (READY, "Hello\n"), (READY, CTRL_C), (READY, CTRL_C)]
    code, shown = talk(steps=steps)
    assert code == 0
    assert "> abc\nCtrl-C again or Ctrl-D leaves.\n> Hello\nYou said: Hello\n" in shown
    assert "abcHello" not in shown


def test_a_message_may_have_several_lines(talk: Talk) -> None:
    goes_on = "\x1b[?2004h. "
    steps = [(READY, "One \\\n"), (goes_on, "two\n"), (READY, "\x1b[200~three\n\nfour\x1b[201~\n"), (READY, CTRL_D)]
    _, shown = talk(steps=steps)
    assert "You said: One two\n" in shown
    assert "You said: three\n\nfour\n" in shown


def test_what_was_said_is_in_the_history_of_the_line_editor(talk: Talk, folder: Path) -> None:
    thread = ("--thread", "thread.json")
    _, shown = talk(*thread, steps=[(READY, "Hello\n"), (READY, "\x1b[A\n"), (READY, CTRL_D)])
    assert shown.count("You said: Hello") == 2
    _, shown = talk(*thread, steps=[(READY, "\x1b[A\n"), (READY, CTRL_D)])
    assert "The conversation has 2 turns already." in " ".join(shown.split())
    assert shown.count("You said: Hello") == 1


def test_a_turn_that_fails_is_one_sentence_and_the_conversation_goes_on(talk: Talk) -> None:
    code, shown = talk(steps=[(READY, "fail\n"), (READY, "Hello\n"), (READY, CTRL_D)])
    assert code == 0, "the person has seen it"
    assert "> fail\nError: The parrot is asleep.\n\n> Hello\nYou said: Hello\n" in shown


def test_the_commands_do_what_the_help_says(talk: Talk, folder: Path) -> None:
    steps = [
        (READY, "/help\n"),
        (READY, "/undo\n"),
        (READY, "One\n"),
        (READY, "Two\n"),
        (READY, "/undo\n"),
        (READY, "/save kept.json\n"),
        (READY, "/save kept.json\n"),
        (READY, "/save\n"),
        (READY, "/functions\n"),
        (READY, "/clera\n"),
        (READY, "//etc\n"),
        (READY, "/clear\n"),
        (READY, "history\n"),
        (READY, "/quit\n"),
    ]
    code, shown = talk(steps=steps)
    assert code == 0
    assert "/undo         Take back the last question and its answer.\n" in shown
    assert "> /undo\nThere is nothing to take back.\n" in shown
    assert "> /undo\nTaken back: Two\n" in shown
    assert "Saved. `portico chat --thread kept.json` continues from here." in shown
    assert shown.count("Name a new file: /save FILE\n") == 2
    assert "  GetTextSearchResults(query" in shown
    assert "There is no command /clera; /help lists them." in shown
    assert "You said: /etc\n" in shown
    assert said_before(shown) == [["user", "history"]]
    kept = folder / "kept.json"
    assert [turn["messages"][0]["content"][0]["text"] for turn in json.loads(kept.read_text())["turns"]] == ["One"]
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_the_file_of_a_thread_follows_what_is_taken_back(talk: Talk, folder: Path) -> None:
    steps = [(READY, "One\n"), (READY, "Two\n"), (READY, "/undo\n"), (READY, "/quit\n")]
    talk("--thread", "thread.json", steps=steps)
    assert len(json.loads((folder / "thread.json").read_text())["turns"]) == 1


def test_a_thread_that_cannot_be_saved_is_told_of_and_the_conversation_goes_on(talk: Talk, folder: Path) -> None:
    steps = [(READY, "One\n"), (READY, 'call tools-shout {"text": "x"}\n'), (READY, "/quit\n")]
    (folder / "thread.json").write_text("x")
    code, shown = talk("--thread", "thread.json", steps=[])
    assert code == 1
    assert "Error: thread.json is not a thread" in shown
    (folder / "thread.json").unlink()
    code, shown = talk("--thread", "thread.json", "--yes", steps=steps)
    assert code == 0, shown


def test_a_file_goes_with_the_next_message_and_no_other(talk: Talk, folder: Path) -> None:
    (folder / "notes.txt").write_text("Red doors.")
    (folder / "x.png").write_bytes(b"\x89PNG")
    refused = ["/attach x.png\n", "See?\n"]
    steps = [*refused, "/attach missing.txt\n", "/attach 'notes.txt'\n", "Look.\n", "And now?\n", "/quit\n"]
    _, shown = talk(steps=[(READY, step) for step in steps])
    assert "does not support images" in shown
    assert "No such file" in shown
    assert "notes.txt (text/plain) goes with your next message." in shown
    assert 'You said: <file name="notes.txt"> Red doors. </file> Look.' in shown
    assert "You said: And now?" in shown

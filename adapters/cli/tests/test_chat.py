"""A conversation through pipes: messages in, answers out, the thread in a file."""

from __future__ import annotations

import json
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

TOOLS = '[functions.tools]\nuse = "tools"\n'
PARROT = f'[search.shelf]\nuse = "shelf"\n{TOOLS}[chat]\nuse = "parrot"\n'
MUTE = PARROT + "[chat.parrot]\ntools = false\nsources = true\n"


@pytest.fixture
def file(folder: Path) -> Path:
    """Write a portico.toml with the parrot."""
    made = folder / "portico.toml"
    made.write_text(PARROT)
    return made


def lines(*messages: str) -> bytes:
    return "".join(f"{message}\n" for message in messages).encode()


def objects(out: str) -> list[Any]:
    return [json.loads(line) for line in out.splitlines()]


def test_each_line_is_a_message_and_each_answer_goes_to_standard_output(portico: Any, file: Path) -> None:
    done = portico("chat", stdin=lines("Hello", "", "  ", "/help", "a \\"))
    assert (done.code, done.out) == (0, "You said: Hello\n\nYou said: /help\n\nYou said: a \\\n")


def test_what_was_said_before_is_known(portico: Any, file: Path) -> None:
    done = portico(
        "chat", "--source", "shelf", "--instructions", "Be brief. {{not a call}}", stdin=lines("One", "history")
    )
    (_, system), *said = json.loads(done.out.split("\n\n", 1)[1])
    assert said == [["user", "One"], ["assistant", "You said: One"], ["user", "history"]]
    assert system.startswith("Be brief. {{not a call}}\n\nYou can search these sources with functions: shelf.")


def test_instructions_come_from_a_file(portico: Any, file: Path, folder: Path) -> None:
    file.write_text('[chat]\nuse = "parrot"\n')
    (folder / "guide.txt").write_text("You are a lighthouse keeper.\n")
    done = portico("chat", "--instructions", "@guide.txt", stdin=lines("system"))
    assert done.out == "You are a lighthouse keeper.\n"
    done = portico("chat", "--instructions", "@nothing.txt")
    assert done.code == 2
    assert done.err == "Error: --instructions: nothing.txt cannot be read: No such file or directory.\n"


def test_each_turn_is_one_json_object_on_a_line(portico: Any, file: Path) -> None:
    done = portico("chat", "--json", stdin=lines("Hello", 'call tools-shout {"text": "hey"}', "fail", "crash", "Bye"))
    hello, called, failed, crashed, bye = objects(done.out)
    assert hello == {
        "answer": "You said: Hello",
        "citations": [],
        "warnings": [],
        "tools": [],
        "selection": None,
        "usage": {"input_tokens": 3, "output_tokens": 2},
        "service": "parrot",
    }
    (tool,) = called["tools"]
    assert (tool["name"], tool["arguments"], tool["result"]) == ("tools-shout", {"text": "hey"}, "HEY")
    assert called["usage"] == {"input_tokens": 6, "output_tokens": 4}
    assert failed == {"error": {"type": "ServiceUnavailable", "message": "The parrot is asleep."}}
    assert crashed["error"]["message"].startswith("Something went wrong that should not: RuntimeError: the parrot fell")
    assert bye["answer"] == "You said: Bye"
    assert done.code == 1, "a turn failed"


def test_a_turn_that_failed_leaves_no_trace_in_the_conversation(portico: Any, file: Path) -> None:
    done = portico("chat", stdin=lines("fail", "history"))
    assert done.err.endswith("Error: The parrot is asleep.\n")
    assert [role for role, _ in json.loads(done.out)] == ["system", "user"]
    assert done.code == 1


def test_of_a_conversation_that_is_too_long_the_newest_turns_are_sent(portico: Any, file: Path, folder: Path) -> None:
    file.write_text('[chat]\nuse = "parrot"\n[chat.parrot]\nmost = 4\n')
    done = portico("chat", "--thread", "thread.json", stdin=lines(*["One", "Two", "Three", "Four", "history"]))
    assert done.code == 0, done.err
    said = [text for _, text in json.loads(done.out.rpartition("\n\n")[2])]
    assert said == ["Four", "You said: Four", "history"]
    assert "The conversation is longer than the model can take; its oldest turns are left out." in done.err
    assert len(json.loads((folder / "thread.json").read_text())["turns"]) == 5, "all of it is kept"
    file.write_text(file.read_text().replace("most = 4", "most = 0"))
    done = portico("chat", "--thread", "thread.json", stdin=lines("Hello"))
    assert done.code == 1
    assert done.err.endswith("Error: The parrot cannot remember so much.\n")


def test_what_a_model_finds_itself_is_numbered_and_its_citations_are_checked(portico: Any, file: Path) -> None:
    call = 'call shelf-GetTextSearchResults {"query": "retry"}'
    done = portico("chat", "--json", stdin=lines("cite", call, "cite"))
    before, found, cited = objects(done.out)
    assert (before["citations"], before["warnings"]) == ([], [])
    assert found["tools"][0]["result"] == [
        {
            "number": 1,
            "name": "book.md › Chapter",
            "link": "file:///shelf/book.md#L7",
            "value": "Retry is set in settings.py.",
        }
    ]
    assert [(each["number"], each["quote"]) for each in cited["citations"]] == [(1, "Retry is set in settings.py.")]
    assert cited["warnings"] == ["The answer cites [77], which no passage backs."]


def test_the_pages_that_a_service_finds_itself_are_shown_once_each(portico: Any, file: Path) -> None:
    done = portico("chat", stdin=lines("web"))
    assert done.out == "You said: web\n\n[1] https://parrots.example/  Parrots\n"


def test_of_search_functions_those_that_can_be_cited_are_offered(portico: Any, file: Path) -> None:
    done = portico("chat", stdin=lines("tools"))
    assert done.out == "shelf-GetTextSearchResults tools-shout tools-send tools-stay tools-fetch\n"


def test_a_service_without_tools_is_given_passages_that_keep_their_numbers(portico: Any, file: Path) -> None:
    passages = '["Retry is set in settings.py.", "Ports are protocols."]'
    file.write_text(MUTE.replace('use = "shelf"', f'use = "shelf"\npassages = {passages}'))
    done = portico("chat", "--json", stdin=lines("sources", "cite", "sources"))
    first, cited, again = objects(done.out)
    assert first["answer"] == again["answer"] == "book.md › Chapter [1] book.md › Chapter [2]"
    assert [each["number"] for each in cited["citations"]] == [1]
    assert cited["warnings"] == ["The answer cites [77], which no passage backs."]
    assert portico("chat", stdin=lines("tools")).out == "\n"


def test_the_embedded_default_quotes_the_documents(portico: Any, folder: Path) -> None:
    (folder / "docs").mkdir()
    (folder / "docs" / "retry.md").write_text("# Retry\n\nSet the retry limit in settings.py.\n")
    done = portico("chat", "--docs", "docs", stdin=lines("Where is the retry limit set?"))
    assert done.code == 0, done.err
    assert done.out == "“Set the retry limit in settings.py.” [1]\n\n[1] docs/retry.md:3  Retry\n"


def test_with_nothing_to_talk_about_it_says_what_to_give(portico: Any) -> None:
    done = portico("chat", stdin=lines("Hello"))
    assert (done.code, done.out) == (2, "")
    assert "Give `--docs FOLDER`, or name a language model" in done.err


def test_a_model_needs_no_source(portico: Any, folder: Path) -> None:
    (folder / "portico.toml").write_text('[chat]\nuse = "parrot"\n')
    done = portico("chat", stdin=lines("Hello"))
    assert done.code == 0, done.err
    assert "Hello" in done.out


def test_an_error_before_the_first_turn_is_one_object_on_a_line_too(portico: Any) -> None:
    done = portico("chat", "--json", stdin=lines("Hello"))
    (error,) = objects(done.out)
    assert (done.code, error["error"]["type"]) == (2, "Misused")


def test_a_source_that_fails_is_told_of_and_ends_no_conversation(portico: Any, file: Path) -> None:
    file.write_text(MUTE.replace('use = "shelf"', 'use = "shelf"\nfailure = "the shelf is locked"'))
    done = portico("chat", stdin=lines("Hello", "Hello"))
    assert done.code == 1
    assert done.err.count("Error: The source 'shelf' failed: RuntimeError: the shelf is locked\n") == 2
    other = '[search.other]\nuse = "shelf"\n'
    file.write_text(file.read_text() + other)
    done = portico("chat", stdin=lines("Hello"))
    assert done.code == 0
    assert "! The source 'shelf' failed: RuntimeError: the shelf is locked\n" in done.err


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_where_nobody_is_there_effects_need_a_yes(portico: Any, file: Path, folder: Path, options: Any) -> None:
    message = lines('call tools-send {"text": "hey"}')
    done = portico("chat", *options, stdin=message)
    assert done.code == 0
    assert "no person can be asked" in done.out
    assert not (folder / "sent.txt").exists()
    done = portico("chat", "--yes", *options, stdin=message)
    assert "sent hey" in done.out
    assert (folder / "sent.txt").read_text() == "hey\n"


def test_a_thread_goes_on_from_its_file(portico: Any, file: Path, folder: Path) -> None:
    thread = folder / "thread.json"
    assert portico("chat", "--thread", "thread.json", stdin=lines("One")).code == 0
    if sys.platform != "win32":
        assert stat.S_IMODE(thread.stat().st_mode) == 0o600
    done = portico("chat", "--thread", "thread.json", stdin=lines("history"))
    assert [text for role, text in json.loads(done.out) if role == "user"] == ["One", "history"]
    assert len(json.loads(thread.read_text())["turns"]) == 2
    assert [each.name for each in folder.iterdir() if "thread" in each.name] == ["thread.json"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b'{"version": 99}', b'{"version": 1, "turns": [3]}']
)
def test_a_damaged_thread_is_one_error_and_stays_as_it_is(
    portico: Any, file: Path, folder: Path, content: bytes
) -> None:
    thread = folder / "thread.json"
    thread.write_bytes(content)
    done = portico("chat", "--thread", "thread.json", stdin=lines("Hello"))
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("Error: thread.json is not a thread that can be continued: ")
    assert done.err.count("\n") == 1
    assert thread.read_bytes() == content


def test_a_thread_that_another_process_wrote_is_not_overwritten(started: Any, file: Path, folder: Path) -> None:
    thread = folder / "thread.json"
    process = started("chat", "--thread", "thread.json", said="One\n", until="thread.json")
    thread.unlink()
    thread.write_text("somebody else's")
    out, err = process.communicate("Two\n", timeout=60)
    assert out == "You said: One\n\nYou said: Two\n"
    assert "thread.json was written by another process meanwhile. It is not overwritten" in err
    assert process.returncode == 1
    assert thread.read_text() == "somebody else's"


def test_a_thread_that_was_made_meanwhile_is_not_overwritten(started: Any, file: Path, folder: Path) -> None:
    process = started("chat", "--thread", "thread.json", said="slow\n", until="slow")
    (folder / "thread.json").write_text("somebody else's")
    (folder / "on").touch()
    _, err = process.communicate(timeout=60)
    assert "thread.json was written by another process meanwhile" in err
    assert (folder / "thread.json").read_text() == "somebody else's"


def test_a_thread_that_cannot_be_kept_is_told_of_before_a_turn(portico: Any, file: Path, folder: Path) -> None:
    done = portico("chat", "--thread", "nowhere/thread.json", stdin=lines("Hello"))
    assert (done.code, done.out) == (2, "")
    assert "There is no folder" in done.err
    done = portico("chat", "--thread", ".", stdin=lines("Hello"))
    assert done.code == 2


def test_a_line_that_is_far_too_long_ends_the_conversation(portico: Any, file: Path) -> None:
    done = portico("chat", stdin=lines("Hello", "x" * 1_500_000))
    assert done.out == "You said: Hello\n"
    assert done.err.endswith("Error: A line has more than 1,000,000 bytes.\n")
    assert done.code == 2


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_an_interrupt_ends_a_piped_conversation(started: Any, file: Path, folder: Path) -> None:
    process = started("chat", "--thread", "thread.json", said="One\nslow\n", until="slow")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "You said: One\n")
    assert err.endswith("Interrupted.\n")
    assert len(json.loads((folder / "thread.json").read_text())["turns"]) == 1

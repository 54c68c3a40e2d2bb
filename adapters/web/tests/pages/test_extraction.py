"""The processes that find the text: never an odd error, never for ever, never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from portico.errors import LimitExceeded, PorticoError, ResponseInvalid
from portico_web.pages import extraction
from portico_web.pages.extraction import Extractors, Job
from portico_web.pages.worker import decode, find_text, kind_of, media_type_of

LINK = "'http://site.example/'"
SLOW = ("<p>a" * 2_000_000).encode()


def job(data: bytes | str, kind: str = "html", seconds: float = 10.0) -> tuple[Job, bytes]:
    given_data = data.encode() if isinstance(data, str) else data
    return Job(kind, None, characters=1_000, seconds=seconds), given_data


def processes(extractors: Extractors) -> list[int]:
    return [process.popen.pid for process in extractors._idle]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_process_serves_one_page_after_another() -> None:
    extractors = Extractors()
    first = await extractors.extract(*job("<title>T</title><p>A door."), LINK)
    assert first == ("A door.", "T", None)
    (pid,) = processes(extractors)
    assert (await extractors.extract(*job("A roof.", "text"), LINK))[0] == "A roof."
    assert processes(extractors) == [pid]
    await extractors.aclose()
    assert not is_alive(pid)


async def test_a_page_that_takes_too_long_costs_its_process_and_names_the_bound() -> None:
    extractors = Extractors()
    began = time.monotonic()
    with pytest.raises(LimitExceeded, match=r"within 0\.5 seconds \(seconds\)"):
        await extractors.extract(*job(SLOW, seconds=0.5), LINK)
    assert time.monotonic() - began < 20
    assert processes(extractors) == []
    assert (await extractors.extract(*job("A roof.", "text"), LINK))[0] == "A roof."
    await extractors.aclose()


ATTRIBUTES = "<title>T</title><p " + " ".join(f"a{number}=1" for number in range(200_000)) + ">A door &amp; a roof.</p>"


@pytest.mark.parametrize("failure", [RecursionError, TypeError, UnicodeEncodeError("ascii", "x", 0, 1, "no")])
def test_where_the_main_text_fails_all_text_is_taken(monkeypatch: pytest.MonkeyPatch, failure: Any) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise failure

    monkeypatch.setattr("trafilatura.bare_extraction", fails)
    head, text = find_text(
        {"kind": "html", "content_type": None, "characters": 100, "seconds": 5.0},
        b"<title>T</title><table><tr><td>A door<td>1.50</tr><tr><td>A roof<td>2.50</table>",
    )
    assert (text.decode(), head["title"]) == ("A door 1.50\nA roof 2.50", "T")


async def test_what_lies_in_the_working_directory_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "struct", "lxml", "encodings"):
        (tmp_path / f"{name}.py").write_text("import os; os._exit(3)")
    monkeypatch.chdir(tmp_path)
    extractors = Extractors()
    assert (await extractors.extract(*job("<p>A door."), LINK))[0] == "A door."
    await extractors.aclose()


async def test_a_process_that_was_ended_while_idle_is_replaced() -> None:
    extractors = Extractors()
    await extractors.extract(*job("A door.", "text"), LINK)
    extractors._idle[0].popen.kill()
    extractors._idle[0].popen.wait()
    assert (await extractors.extract(*job("A roof.", "text"), LINK))[0] == "A roof."
    await extractors.aclose()


async def test_a_page_that_ends_every_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction, "_PROGRAM", "import sys; sys.stdin.buffer.read(8); sys.exit(3)")
    extractors = Extractors()
    with pytest.raises(ResponseInvalid, match="ends the process"):
        await extractors.extract(*job("A door.", "text"), LINK)
    await extractors.aclose()


async def test_no_python_to_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    extractors = Extractors()
    with pytest.raises(PorticoError, match="cannot start a process"):
        await extractors.extract(*job("A door.", "text"), LINK)
    await extractors.aclose()


async def test_a_caller_that_is_cancelled_ends_its_process() -> None:
    extractors = Extractors()
    await extractors.extract(*job("A door.", "text"), LINK)
    (pid,) = processes(extractors)
    reading = asyncio.create_task(extractors.extract(*job(SLOW, seconds=60.0), LINK))
    await asyncio.sleep(0.2)
    began = time.monotonic()
    reading.cancel()
    await asyncio.wait({reading})
    assert reading.cancelled()
    assert time.monotonic() - began < 20
    assert not is_alive(pid)
    assert (await extractors.extract(*job("A roof.", "text"), LINK))[0] == "A roof."
    await extractors.aclose()


async def test_a_caller_that_is_cancelled_at_once_leaves_no_process() -> None:
    extractors = Extractors()
    for seconds in (0.0, 0.001, 0.01, 0.03):
        reading = asyncio.create_task(extractors.extract(*job("A door.", "text"), LINK))
        await asyncio.sleep(seconds)
        reading.cancel()
        await asyncio.wait({reading})
    await extractors.aclose()


async def test_more_pages_than_processes_wait_for_their_turn() -> None:
    extractors = Extractors()
    texts = [f"Door {number}." for number in range(20)]
    found = await asyncio.gather(*(extractors.extract(*job(text, "text"), LINK) for text in texts))
    assert [text for text, *_ in found] == texts
    assert len(processes(extractors)) <= 2
    await extractors.aclose()


async def test_a_process_is_replaced_after_many_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction, "_JOBS_A_PROCESS", 2)
    extractors = Extractors()
    for _ in range(3):
        await extractors.extract(*job("A door.", "text"), LINK)
    assert [process.jobs for process in extractors._idle] == [1]
    await extractors.aclose()


async def test_the_application_s_secrets_are_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = ("OPENAI_API_KEY", "PYTHONANYWHERE_API_TOKEN", "HTTPS_PROXY", "PATH_TOKEN")
    for name in secret:
        monkeypatch.setenv(name, "sk-123")
    assert not set(secret) & set(extraction._environment())
    assert extraction._environment().get("PATH") == os.environ.get("PATH")


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name == "nt", reason="signals of a terminal")
async def test_an_interrupt_in_the_terminal_is_for_the_application() -> None:
    extractors = Extractors()
    await extractors.extract(*job("A door.", "text"), LINK)
    (pid,) = processes(extractors)
    os.kill(pid, signal.SIGINT)
    assert (await extractors.extract(*job("A roof.", "text"), LINK))[0] == "A roof."
    assert processes(extractors) == [pid]
    await extractors.aclose()


TAGS = """<p> </p> <div> </div> <article> <table><tr><td> </table> <ul><li> <h1> <a> </a> <br/> <script> </script>
<style> <!-- --> <![CDATA[ ]]> <?xml <!doctype <title> </title> <meta <html /> &amp; &#0; &#x110000; & <body> <pre>
<svg> <math> <template> < > charset=x href='//[' class='a' <base <img"""
PARTS_OF_PDF = b"""%PDF-1.7|1 0 obj|2 0 obj|3 0 obj|4 0 obj|endobj|<</Type/Catalog/Pages 2 0 R>>|stream|endstream|xref
0 5|<</Type/Pages/Kids[3 0 R]/Count 1>>|<</Type/Page/Parent 2 0 R/Contents 4 0 R>>|<</Length 44>>|[|<<|>>|(|/Kids|
BT /F1 12 Tf (door) Tj ET|trailer<</Root 1 0 R/Size 5>>|startxref|9|%%EOF|0000000009 00000 n |99999999999|\n"""
tags = st.sampled_from([*TAGS.split(), "\0", "\ud7ff"])
words = st.text(max_size=20) | st.just(" A door is behind the stairs, said he. ")
html = st.lists(tags | words, max_size=40)
pages = html.map("".join).map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=400)
pdfs = st.lists(st.sampled_from(PARTS_OF_PDF.split(b"|")) | st.binary(max_size=30), max_size=40).map(b"\n".join)


@given(
    data=pages | pdfs,
    kind=st.sampled_from(["html", "text", "pdf"]),
    content_type=st.none()
    | st.sampled_from(["text/html; charset=utf-16", "x; charset=gb18030"])
    | st.text(max_size=30),
    characters=st.integers(1, 200),
)
@settings(deadline=None)
def test_whatever_is_read_gives_a_text_within_the_bound_or_a_fault(
    data: bytes, kind: str, content_type: str | None, characters: int
) -> None:
    question = {"kind": kind, "content_type": content_type, "characters": characters, "seconds": 5.0}
    head, text = find_text(question, data)
    if "fault" in head:
        assert head["fault"].strip()
        assert len(head["fault"]) < 2_000
        assert text == b""
        return
    assert 0 < len(text.decode()) <= characters
    assert head["title"] is None or head["title"].strip()
    assert head["cut"] is None or head["cut"].strip()


@given(st.binary(max_size=300), st.none() | st.text(max_size=40), st.sampled_from(["html", "text"]))
def test_any_bytes_decode_or_are_no_text(data: bytes, header: str | None, kind: Any) -> None:
    text = decode(data, header, kind)
    assert text is None or ("\0" not in text and "\r" not in text)
    if text is not None:
        text.encode()


@given(st.text(min_size=1, max_size=80).filter(lambda text: not set(text) & {chr(code) for code in range(32)}))
def test_what_is_sent_as_utf8_comes_back(text: str) -> None:
    if "\x7f" in text:
        return
    assert decode(text.encode(), "text/plain; charset=utf-8", "text") == text.removeprefix("\ufeff")


@given(st.none() | st.text(max_size=60), st.binary(max_size=60))
def test_any_content_type_is_of_a_kind_or_of_none(header: str | None, start: bytes) -> None:
    media_type = media_type_of(header)
    before, after = kind_of(media_type), kind_of(media_type, start)
    assert (before is None) == (after is None), "what is refused by its type cannot be saved by its bytes"

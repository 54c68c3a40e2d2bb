"""A server that is broken or means harm is bounded, and what is wrong with it is said in a sentence."""

from __future__ import annotations

import asyncio
import logging
import sys
import unicodedata
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import psutil
import pytest
from mcp_types import GetPromptResult

from portico import Kernel
from portico.errors import (
    ArgumentsInvalid,
    ConfigurationError,
    LimitExceeded,
    PorticoError,
    ResponseInvalid,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from portico.plans import From, Plan, Step, Value
from portico.plugins import Secret
from portico_mcp._client.pins import Listing
from portico_mcp._client.wire import prompt_function
from portico_mcp.config import MCPSettings
from portico_mcp.functions import MCPFunctions

Odd: TypeAlias = Any
Processes: TypeAlias = Callable[[], list[Any]]
TEXT = {"type": "string"}
Load: TypeAlias = Callable[..., Awaitable[Odd]]
Make: TypeAlias = Callable[..., Odd]


def assert_plain(error: BaseException) -> None:
    """Fail for an error that is not of Portico, names no plugin, or says more than a person can read."""
    text = str(error)
    assert isinstance(error, PorticoError), repr(error)
    assert text.startswith("functions.odd")
    assert len(text) < 3_000
    assert text[-1] in ".!?…" or "last words: " in text, text
    said = text.partition(" Its last words: ")[0]
    assert_readable(said)
    assert "\n" not in said
    assert_readable(text)


def assert_readable(text: str) -> None:
    """Fail for a text with characters that a terminal obeys or hides."""
    assert [each for each in text if each != "\n" and unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl")] == []


async def failure(awaited: Awaitable[Any]) -> PorticoError:
    """Return the error of what fails, which must be plain."""
    with pytest.raises(PorticoError) as caught:
        await awaited
    assert_plain(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("behaviour", "kind", "words"),
    [
        ("fails", ServiceUnavailable, "the database cannot be opened\nSet DATABASE_URL."),
        ("ends", ServiceUnavailable, "exit code 0"),
        ("silent", ServiceTimeout, "within 0.5 seconds"),
        ("silent_list", ServiceTimeout, "within 0.5 seconds"),
        ("dies_after_start", ServiceUnavailable, "exit code 4"),
        ("refuses_list", ServiceError, "no list today"),
        ("old", ServiceError, "1999-01-01"),
        ("endless", LimitExceeded, "maximum_tools"),
        ("bad_entries", LimitExceeded, "maximum_tools"),
        ("same_page", LimitExceeded, ""),
        ("empty_pages", LimitExceeded, ""),
        ("huge_schema", LimitExceeded, "maximum_result_bytes"),
        ("deeper_schema", LimitExceeded, "nests too deeply"),
    ],
)
async def test_a_server_that_cannot_be_used_is_told_of_in_a_sentence(
    make: Make, behaviour: str, kind: type[PorticoError], words: str
) -> None:
    limits = {"start_timeout": 0.5} if "silent" in behaviour else {}
    error = await failure(make(behaviour, **limits).load())
    assert isinstance(error, kind), repr(error)
    assert words in str(error)


async def test_a_command_that_is_not_there_is_a_fault_of_the_settings() -> None:
    source = MCPFunctions(MCPSettings(command="no-such-server"))
    assert isinstance(error := await failure(source.load("odd")), ConfigurationError)
    assert "no-such-server" in str(error)
    await source.aclose()


async def test_a_path_of_a_command_is_read_from_its_folder_and_what_is_wrong_is_named(tmp_path: Path) -> None:
    def of(command: str, folder: str) -> MCPFunctions:
        return MCPFunctions(MCPSettings(command=command, folder=tmp_path / folder))

    for command, folder, words in (
        ("python", "nowhere", "there is no folder"),
        ("python server.py", "", "`args`"),
        ("./missing", "", "no such program"),
    ):
        error = await failure(of(command, folder).load("odd"))
        assert isinstance(error, ConfigurationError)
        assert words in str(error)
    program = tmp_path / "server"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {Path(__file__).parent / 'servers' / 'odd.py'} normal\n")
    program.chmod(0o755)
    source = of("./server", "")
    assert "echo" in [function.name for function in await source.load("odd")]
    await source.aclose()


@pytest.mark.parametrize("behaviour", ["deep_schema", "wide_schema", "references", "no_schema"])
async def test_a_tool_whose_schema_cannot_be_used_is_lost_and_no_other(
    load: Load, behaviour: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "portico_mcp"):
        odd = await load(behaviour)
    assert await odd.call("echo", text="still here") == "still here"
    assert "lost" in caplog.text
    assert len(caplog.text) < 5_000
    assert "odd-parts" not in odd.kernel.functions
    for lost in odd.source.lost:
        assert_readable(lost)
        assert len(lost) < 500


async def test_schemas_that_mean_nothing_break_no_manual_and_no_check_of_a_plan(load: Load) -> None:
    odd = await load("odd_schemas")
    names = [function.full_name for function in odd.plugin if function.name.startswith("odd_")]
    assert len(names) + len(odd.source.lost) == 7
    for name in names:
        assert odd.kernel.specs[name].parameters["type"] == "object"
        steps = (Step("s1", name, {"value": Value({"x": 1})}), Step("s2", name, {"value": From("s1", ("x",))}))
        odd.kernel.check_plan(Plan("Try", steps, From("s2")))
    assert await odd.call("echo", text="x") == "x"


@pytest.mark.parametrize("behaviour", ["garbage", "floods"])
async def test_a_server_that_writes_more_than_messages_is_understood(load: Load, behaviour: str) -> None:
    odd = await load(behaviour)
    assert await asyncio.gather(*(odd.call("echo", text=str(number)) for number in range(3))) == ["0", "1", "2"]


async def test_a_server_that_writes_no_messages_at_all_is_ended(load: Load) -> None:
    odd = await load()
    assert await odd.call("grumble", lines=5) == "done"
    await failure(odd.call("grumble", lines=100_000))
    assert await odd.call("echo", text="again") == "again"


async def test_names_that_are_no_names_of_functions_are_rewritten_and_all_differ(load: Load) -> None:
    odd = await load("names")
    names = [function.name for function in odd.plugin]
    assert len(set(names)) == len(names) == 12 - len(odd.source.lost)
    assert all(name.isascii() and name.replace("_", "a").isalnum() and len(name) <= 70 for name in names)


async def test_of_tools_with_one_name_the_first_is_called(load: Load) -> None:
    odd = await load("duplicates")
    assert await odd.call("echo", text="first") == "first"


async def test_patterns_of_a_server_are_not_tried_here(load: Load) -> None:
    odd = await load("patterns")
    # On the pattern (a+)+$, this takes longer than the universe has been there.
    await failure(odd.call("slow", value="a" * 50_000 + "!"))
    assert await odd.call("echo", text="x") == "x"


async def test_what_a_server_says_of_its_tools_shows_no_escape_sequences(load: Load) -> None:
    odd = await load("escapes")
    for function in odd.plugin:
        assert_readable(function.full_name)
        assert_readable(function.description)
    assert await odd.call("look", text="x") == "x"


async def test_a_result_is_data_whatever_it_says(load: Load) -> None:
    odd = await load()
    assert "Ignore all previous instructions" in await odd.call("instruct")
    assert "\x1b[2J" in await odd.call("escape")
    assert [call["name"] for call in odd.received] == ["instruct", "escape"]


async def test_a_tool_that_fails_is_an_error_with_its_words(load: Load) -> None:
    odd = await load()
    error = await failure(odd.call("fail", words="no such \x1b[31mplace\x1b[0m"))
    assert "no such place" in str(error)
    assert len(str(await failure(odd.call("fail", words="w" * 1_000_000)))) < 3_000


async def test_a_tool_that_repeats_a_secret_shows_it_in_no_error(load: Load) -> None:
    odd = await load(env={"KEY": Secret("s3cret-key"), "EMPTY": Secret("")})
    error = await failure(odd.call("fail", words="the key s3cret-key is wrong"))
    assert "the key ******** is wrong." in str(error)
    error = await failure(odd.call("refuse", code=-32602, words="s3cret-key"))
    assert "s3cret" not in str(error)


@pytest.mark.parametrize("code", [-32000, -32001, -32602])
async def test_a_server_that_uses_the_codes_of_the_client_is_not_gone(load: Load, code: int) -> None:
    odd = await load()
    error = await failure(odd.call("refuse", code=code, words="no session of this name"))
    assert "refuse failed: no session of this name." in str(error)
    assert await odd.call("echo", text="x") == "x"
    assert [call["name"] for call in odd.received] == ["refuse", "echo"]
    assert len({call["pid"] for call in odd.received}) == 1


@pytest.mark.parametrize("text", ["\ud800", object(), float("nan"), {1, 2}])
async def test_arguments_that_are_not_json_are_refused_before_they_are_sent(load: Load, text: object) -> None:
    odd = await load()
    with pytest.raises(ArgumentsInvalid, match="not JSON"):
        await odd.call("echo", text=text)
    assert await odd.call("echo", text="x") == "x"
    assert len(odd.received) == 1


async def test_a_parameter_that_may_be_left_out_has_the_default_of_the_server_and_no_other(load: Load) -> None:
    odd = await load("defaults")
    (function,) = odd.plugin
    assert function.spec.parameters["properties"] == {"days": {"type": "integer", "default": 3}, "text": TEXT}


async def test_a_prompt_takes_texts_and_gives_parts_that_can_be_read() -> None:
    source, kernel = MCPFunctions(MCPSettings(command="none")), Kernel()
    server = source.server("odd")
    listing = Listing(prompts=({"name": "draw", "arguments": [{"name": "what"}]},))
    kernel.add_plugin(source.plugin_of(server, listing))
    with pytest.raises(ArgumentsInvalid, match="what: not a text"):
        await kernel.invoke("odd-draw", what=5)

    async def get(*_: object) -> GetPromptResult:
        picture = {"type": "image", "data": "abc", "mimeType": "image/png"}
        return GetPromptResult.model_validate({"messages": [{"role": "user", "content": picture}]}, by_name=False)

    function = prompt_function(listing.prompts[0], "draw", "odd", get, effects=True)
    with pytest.raises(ResponseInvalid, match="a picture that cannot be read"):
        await function.bound(kernel).callable()


@pytest.mark.parametrize("function", ["wrong", "forgetful"])
async def test_a_result_of_another_form_than_the_tool_says_is_refused(load: Load, function: str) -> None:
    odd = await load()
    assert isinstance(await failure(odd.call(function)), ResponseInvalid)
    assert await odd.call("add", a=1, b=2) == {"sum": 3}


async def test_a_result_that_is_too_large_is_not_taken_in(load: Load) -> None:
    odd = await load()
    before = psutil.Process().memory_info().rss
    error = await failure(odd.call("big", bytes=50_000_000))
    assert isinstance(error, LimitExceeded)
    assert "10,000,000" in str(error)
    assert psutil.Process().memory_info().rss - before < 45_000_000
    assert len(await odd.call("big", bytes=9_000_000)) == 9_000_000


async def test_a_call_without_an_answer_ends_at_its_time_and_the_server_goes_on(load: Load) -> None:
    odd = await load(timeout=0.5)
    assert isinstance(await failure(odd.call("nothing")), ServiceTimeout)
    assert await odd.call("cancelled") == "1"
    assert len({call["pid"] for call in odd.received}) == 1


async def test_a_call_that_is_cancelled_is_told_to_the_server(load: Load) -> None:
    odd = await load()
    call = asyncio.create_task(odd.call("sleep", seconds=60))
    await odd.wait_for(1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    while await odd.call("cancelled") != "1":
        await asyncio.sleep(0.01)


async def test_a_server_that_dies_in_a_call_is_started_by_the_next(load: Load) -> None:
    odd = await load()
    error = await failure(odd.call("die", code=7))
    assert isinstance(error, ServiceUnavailable)
    assert "exit code 7" in str(error)
    assert await odd.call("echo", text="again") == "again"
    assert [call["name"] for call in odd.received] == ["die", "echo"]


@pytest.mark.parametrize("to", ["renamed", "changed", "described", "gone"])
async def test_a_tool_that_changes_under_way_is_refused_until_it_is_accepted(load: Load, to: str) -> None:
    odd = await load()
    assert await odd.call("echo", text="before") == "before"
    assert await odd.call("change", to=to) == "changed"
    error = await failure(odd.call("echo", text="after"))
    assert "echo" in str(error)
    assert [call["arguments"] for call in odd.received if call["name"] == "echo"] == [{"text": "before"}]
    if to != "renamed":
        assert await odd.call("look", text="as before") == "as before"


async def test_no_call_slips_through_while_changed_tools_are_compared(load: Load) -> None:
    odd = await load()
    assert await odd.call("change", to="changed") == "changed"
    ends = await asyncio.gather(*(odd.call("echo", text=str(n)) for n in range(20)), return_exceptions=True)
    assert {type(end) for end in ends} == {ConfigurationError}
    assert [call["name"] for call in odd.received] == ["change"]


async def test_only_named_variables_of_the_environment_reach_a_server(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_APPLICATION", "s3cret")
    odd = await load()
    assert "s3cret" not in await odd.call("environment")


async def test_what_a_server_writes_to_its_error_output_shows_no_secret_in_logs(
    load: Load, caplog: pytest.LogCaptureFixture
) -> None:
    odd = await load(env={"KEY": Secret("out of memory")})
    with caplog.at_level(logging.DEBUG, "portico_mcp"):
        await failure(odd.call("die", code=7))
    assert "********, or so" in caplog.text
    assert "out of memory" not in caplog.text


async def test_a_server_that_will_not_end_is_killed(make: Make, processes: Processes) -> None:
    odd = make("stubborn")
    await odd.load()
    assert await odd.call("echo", text="x") == "x"
    await odd.source.aclose()
    assert processes() == []


async def test_a_tool_is_chosen_by_its_name_or_by_that_of_its_function(load: Load, make: Make) -> None:
    odd = await load("names", include=("x" * 64, "A.B"))
    assert odd.plugin is not None
    assert {function.name for function in odd.plugin} == {"x" * 64, "A_B"}
    with pytest.raises(ConfigurationError, match=r"functions\.odd\.exclude.*'eccho'.*echo"):
        await make(exclude=("eccho",)).load()

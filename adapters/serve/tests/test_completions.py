"""Chat completions, asked with OpenAI's own client: models, whole and streamed answers, sources, errors."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionChunk
from tests.support.desks import PATIENCE, eventually, plan, step
from tests.support.guarded import TOKEN, Served

CITED = {
    "answer": "Ports are protocols [1], and plans are data [2].",
    "citations": [
        {"number": 1, "name": "ports.md", "link": "file:///docs/ports.md#L3", "quote": "Ports are protocols."},
        {"number": 2, "name": "plans.pdf", "link": "file:///docs/plans.pdf#page=2", "quote": "Plans are data."},
    ],
}
SEND = {"plans": [plan(step("s1", "tools-send", text="hey"), result="s1")]}
SHOUT = {"plans": [plan(step("s1", "tools-shout", text="hey"), result="s1")]}
WAIT = {"plans": [plan(step("s1", "tools-wait", text="hey"), result="s1")]}


@pytest.fixture
async def client(served: Served) -> AsyncIterator[openai.AsyncOpenAI]:
    """Return OpenAI's client of the server."""
    async with openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key=TOKEN, timeout=PATIENCE) as made:
        yield made


def says(text: object) -> Any:
    """Return the messages of a conversation that only begins."""
    return [{"role": "user", "content": text if isinstance(text, str) else json.dumps(text)}]


async def collect(stream: Any) -> tuple[str, list[ChatCompletionChunk]]:
    """Return the text of a stream, and its chunks."""
    chunks = [chunk async for chunk in stream]
    deltas = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    return "".join(deltas), chunks


async def test_the_models_are_runs_and_the_agent(client: openai.AsyncOpenAI) -> None:
    assert [each.id async for each in client.models.list()] == ["portico", "portico-agent"]
    assert (await client.models.retrieve("portico")).owned_by == "portico"
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("gpt")


async def test_a_run_answers_with_its_sources_as_text(client: openai.AsyncOpenAI) -> None:
    reply = await client.chat.completions.create(model="portico", messages=says(CITED))

    text = reply.choices[0].message.content or ""
    assert text.startswith(CITED["answer"])
    assert "- [1] ports.md, file:///docs/ports.md#L3\n- [2] plans.pdf" in text
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (11, 7, 18)
    assert (reply.id[:9], reply.object, reply.model) == ("chatcmpl-", "chat.completion", "portico")


async def test_a_streamed_answer_is_the_whole_one(served: Served, client: openai.AsyncOpenAI) -> None:
    whole = await client.chat.completions.create(model="portico", messages=says(CITED))
    stream = await client.chat.completions.create(
        model="portico", messages=says(CITED), stream=True, stream_options={"include_usage": True}
    )
    text, chunks = await collect(stream)

    assert text == whole.choices[0].message.content
    assert len([chunk for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]) > 5
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-2:] == [None, "stop"]
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage
    assert len({chunk.id for chunk in chunks}) == 1
    assert await served.runs() == 2


async def test_usage_is_streamed_where_it_is_asked_for(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(model="portico", messages=says(CITED), stream=True)
    _, chunks = await collect(stream)

    assert all(chunk.choices for chunk in chunks)


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("White [2], and high [1].", "White [2], and high [1]."),
        (
            "White [1], high [1], cold [2] (in May), and [see 1].",
            "White [1], high [1], cold [2] (in May), and [see 1].",
        ),
        ("Of (Source 2) and (Ref 1).", "Of (Source 2) and (Ref 1)."),
        ("It is [not closed", "It is [not closed"),
        ("Of [1", "Of [1"),
        ("", ""),
    ],
)
async def test_marks_in_any_order_are_streamed_as_they_end(
    client: openai.AsyncOpenAI, written: str, answer: str
) -> None:
    stream = await client.chat.completions.create(model="portico", messages=says({"answer": written}), stream=True)
    text, _ = await collect(stream)

    assert text.strip() == answer.strip()


async def test_steps_are_told_before_the_answer(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(model="portico", messages=says(SHOUT), stream=True)
    text, chunks = await collect(stream)

    assert text == "HEY"
    told = [(each.choices[0].delta.model_extra or {}).get("reasoning_content") for each in chunks]
    assert "s1 tools-shout\n" in told


@pytest.mark.parametrize("stream", [False, True])
async def test_a_plan_that_waits_is_said_with_the_page_of_its_run(
    served: Served, client: openai.AsyncOpenAI, stream: bool
) -> None:
    reply: Any = await client.chat.completions.create(model="portico", messages=says(SEND), stream=stream)
    text = (await collect(reply))[0] if stream else reply.choices[0].message.content

    address = text.split()[-1]
    assert address.startswith(f"{served.url}/runs/")
    assert not Path("sent.txt").exists()
    run = address.rpartition("/")[2]
    async with served.browser() as browser:
        assert (await browser.get(f"/api/runs/{run}")).json()["state"] == "held"
        assert (await browser.post(f"/api/runs/{run}/approve", json={})).status_code == 202
        async with asyncio.timeout(PATIENCE):
            while (await browser.get(f"/api/runs/{run}")).json()["state"] != "done":
                await asyncio.sleep(0.02)
    assert Path("sent.txt").read_text() == "hey\n"


async def test_what_cannot_be_done_is_the_answer(client: openai.AsyncOpenAI) -> None:
    reply = await client.chat.completions.create(model="portico", messages=says("only words"))

    assert "cannot be done" in (reply.choices[0].message.content or "")


async def test_the_conversation_before_is_the_context_of_the_run(served: Served, client: openai.AsyncOpenAI) -> None:
    messages: Any = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Who are you?"}]},
        {"role": "assistant", "content": "A server."},
        *says(CITED),
    ]
    reply = await client.chat.completions.create(model="portico", messages=messages)

    store: Any = served.desk.kernel.run_store
    entries = await store.read((reply.model_extra or {})["run"])
    begun = json.dumps(entries[0])
    assert all(each in begun for each in ("Be brief.", "Who are you?", "A server."))


async def test_the_agent_answers_a_conversation(client: openai.AsyncOpenAI) -> None:
    messages: Any = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Good day."},
        {"role": "user", "content": "And now?"},
    ]
    reply = await client.chat.completions.create(model="portico-agent", messages=messages)
    stream = await client.chat.completions.create(model="portico-agent", messages=messages, stream=True)
    text, chunks = await collect(stream)

    assert reply.choices[0].message.content == text == "You said: And now?"
    assert len(chunks) > 3
    assert reply.usage is not None
    assert reply.usage.total_tokens == 5


@pytest.mark.parametrize("stream", [False, True])
async def test_the_agent_searches_and_its_sources_are_text(client: openai.AsyncOpenAI, stream: bool) -> None:
    asked = says('call shelf-GetTextSearchResults {"query": "ports"}')
    reply: Any = await client.chat.completions.create(model="portico-agent", messages=asked, stream=stream)
    text = (await collect(reply))[0] if stream else reply.choices[0].message.content

    assert "[1]" in text
    assert "- [1] ports.md, file:///docs/ports.md#L3" in text


async def test_the_agent_calls_nothing_that_has_effects(client: openai.AsyncOpenAI) -> None:
    asked = says('call tools-send {"text": "hey"}')
    reply = await client.chat.completions.create(model="portico-agent", messages=asked)

    assert "no person is here" in (reply.choices[0].message.content or "")
    assert not Path("sent.txt").exists()


async def test_many_turns_of_the_agent_number_their_own_sources(client: openai.AsyncOpenAI) -> None:
    asked = says('call shelf-GetTextSearchResults {"query": "ports"}')
    replies = await asyncio.gather(
        *(client.chat.completions.create(model="portico-agent", messages=asked) for _ in range(8))
    )

    assert len({reply.choices[0].message.content for reply in replies}) == 1


@pytest.mark.parametrize(
    ("request_body", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": [{"role": "user", "content": " "}]}, "messages"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "judge", "content": "x"}]}, "messages[0]"),
        ({"messages": ["x"]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
         "messages[0].content"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "x" * 70_000}]}, "messages"),
        ({"n": 2}, "n"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"stream": "yes"}, "stream"),
        ({"stream": 1}, "stream"),
        ({"model": 7}, "model"),
    ],
    ids=str,
)  # fmt: skip
async def test_what_is_wrong_with_a_request_is_said_in_the_form_of_openai(
    served: Served, request_body: dict[str, Any], param: str
) -> None:
    body = {"model": "portico", "messages": says("x"), **request_body}
    async with served.program() as http:
        response = await http.post("/v1/chat/completions", json=body)

    error = response.json()["error"]
    assert (response.status_code, error["type"], error["param"]) == (400, "invalid_request_error", param)
    assert error["message"].endswith(".")


async def test_errors_are_those_that_the_client_knows(served: Served, client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="portico-agent"):
        await client.chat.completions.create(model="gpt-5", messages=says("x"))
    with pytest.raises(openai.AuthenticationError):
        await client.with_options(api_key="wrong").models.list()
    with pytest.raises(openai.InternalServerError, match="asleep"):
        await client.chat.completions.create(model="portico-agent", messages=says("fail"))
    async with served.program() as http:
        response = await http.post("/v1/chat/completions", json=[1])
    assert response.json()["error"]["type"] == "invalid_request_error"


async def test_an_error_of_a_stream_ends_it_as_an_error(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(model="portico-agent", messages=says("fail"), stream=True)

    with pytest.raises(openai.APIError, match="asleep"):
        await collect(stream)


async def test_a_run_that_fails_is_run_once(served: Served, client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.InternalServerError) as failed:
        await client.chat.completions.create(model="portico", messages=says({"crash": True}))

    assert "fell over" not in str(failed.value)
    assert await served.runs() == 1
    assert [str(each) for each in served.reported] == ["the planner fell over"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_goes_away_ends_its_run(served: Served, stream: bool) -> None:
    body = {"model": "portico", "messages": says(WAIT), "stream": stream}
    async with served.program() as http:
        task = asyncio.create_task(http.post("/v1/chat/completions", json=body))
        async with asyncio.timeout(PATIENCE):
            while not Path("begun.txt").exists():
                await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.wait([task])
        async with asyncio.timeout(PATIENCE):
            while True:
                [run] = (await http.get("/api/runs")).json()["runs"]
                if run["state"] == "interrupted":
                    break
                await asyncio.sleep(0.02)


async def test_what_is_slow_to_stop_is_awaited_without_keeping_the_processor_busy(client: openai.AsyncOpenAI) -> None:
    before = len(asyncio.all_tasks())
    goal = {"plans": [plan(step("s1", "tools-linger", text="hey"), result="s1")]}
    stream = await client.chat.completions.create(model="portico", messages=says(goal), stream=True)
    async with asyncio.timeout(PATIENCE):
        while not Path("begun.txt").exists():
            await asyncio.sleep(0.02)
    used = time.process_time()
    await stream.close()

    await eventually(lambda: len(asyncio.all_tasks()) <= before)

    assert time.process_time() - used < 1, "two seconds of waiting took more than a second of the processor"


async def test_halves_of_surrogate_pairs_are_no_fault_of_ours(served: Served) -> None:
    body = b'{"model": "portico", "messages": [{"role": "user", "content": "\\ud800"}]}'
    async with served.program() as http:
        response = await http.post("/v1/chat/completions", content=body, headers={"content-type": "application/json"})

    assert response.status_code in (200, 400)
    assert served.reported == []


@pytest.mark.parametrize("model", ["portico", "portico-agent"])
async def test_a_client_that_leaves_a_stream_is_no_fault(
    served: Served, client: openai.AsyncOpenAI, model: str
) -> None:
    asked = says({"answer": "a b c d e f", "pause": 1}) if model == "portico" else says("slow")
    before = len(asyncio.all_tasks())
    stream = await client.chat.completions.create(model=model, messages=asked, stream=True)
    async for chunk in stream:
        if chunk.choices[0].delta.content:
            break

    await stream.close()

    await eventually(lambda: len(asyncio.all_tasks()) <= before)

    assert served.reported == []


async def test_a_stream_that_the_server_breaks_off_does_not_look_whole(
    served: Served, client: openai.AsyncOpenAI
) -> None:
    stream = await client.chat.completions.create(model="portico-agent", messages=says("slow"), stream=True)
    with pytest.raises(openai.APIError, match="The server ends"):
        async for chunk in stream:
            if chunk.choices[0].delta.content and served.guard is not None:
                served.guard.end()

    assert served.reported == []


async def test_a_run_of_a_program_is_one_of_those_here_and_can_be_cancelled(
    served: Served, client: openai.AsyncOpenAI
) -> None:
    whole = asyncio.create_task(client.chat.completions.create(model="portico", messages=says(WAIT)))
    async with asyncio.timeout(PATIENCE), served.program() as program:
        while not Path("begun.txt").exists():
            await asyncio.sleep(0.02)
        [run] = (await program.get("/api/runs")).json()["runs"]
        cancelled = await program.post(f"/api/runs/{run['run']}/cancel")
        after = (await program.get(f"/api/runs/{run['run']}")).json()

    assert (run["state"], run["here"], cancelled.status_code) == ("running", True, 202)
    assert (after["state"], after["here"]) == ("interrupted", False)
    with pytest.raises(openai.ConflictError, match="cancelled"):
        await whole
    assert served.reported == []

"""Conversations: answers as they come, questions to all tabs, one turn at a time, and a restart in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.desks import PATIENCE, Client, workshop

SEND = 'call tools-send {"text": "hey"}'


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[Client]:
    async with workshop(folder) as made:
        yield made


async def begin(client: Client) -> str:
    """Begin a conversation."""
    return str((await client.post("/chats", 201))["chat"])


async def say(client: Client, chat: str, text: str) -> None:
    """Say something in a conversation."""
    await client.post(f"/chats/{chat}/messages", 202, {"text": text})


async def answered(client: Client, chat: str) -> dict[str, Any]:
    """Return a conversation when no turn is taken."""
    async with asyncio.timeout(PATIENCE):
        while (found := await client.get(f"/chats/{chat}"))["busy"]:
            await asyncio.sleep(0.02)
        assert isinstance(found, dict)
        return found


async def question_of(client: Client, chat: str) -> dict[str, Any]:
    """Return the open question of a conversation."""
    async with asyncio.timeout(PATIENCE):
        while not (asked := (await client.get(f"/chats/{chat}"))["question"]):
            await asyncio.sleep(0.02)
        assert isinstance(asked, dict)
        return asked


async def answer(client: Client, chat: str, said: str, status: int = 202) -> None:
    """Answer the open question."""
    asked = await question_of(client, chat)
    await client.post(f"/chats/{chat}/answers", status, {"question": asked["question"], "answer": said})


async def test_an_answer_comes_piece_by_piece_and_then_as_a_whole(client: Client) -> None:
    chat = await begin(client)
    seen: list[tuple[str, Any]] = []
    async with client.events(f"/chats/{chat}") as events:
        await say(client, chat, "Good day, dear parrot")
        async for event, data in events:
            seen.append((event, data))
            if event == "snapshot" and data["messages"] and not data["busy"]:
                break

    pieces = "".join(data["text"] for event, data in seen if event == "text")
    assert pieces == "You said: Good day, dear parrot"
    assert [message["text"] for message in seen[-1][1]["messages"]] == ["Good day, dear parrot", pieces]
    assert [data["role"] for event, data in seen if event == "message"] == ["user", "assistant"]


async def test_a_call_with_effects_asks_in_every_tab_and_one_answer_counts(client: Client) -> None:
    chat = await begin(client)
    async with client.events(f"/chats/{chat}") as first, client.events(f"/chats/{chat}") as second:
        await say(client, chat, SEND)
        asked = await question_of(client, chat)
        assert (asked["function"], asked["arguments"]) == ("tools-send", {"text": "hey"})
        for tab in (first, second):
            async for event, data in tab:
                if event == "question" or (event == "snapshot" and data["question"]):
                    break
        said = {"question": asked["question"], "answer": "yes"}
        codes = await asyncio.gather(*(client.http.post(f"/api/chats/{chat}/answers", json=said) for _ in range(3)))

    assert sorted(each.status_code for each in codes) == [202, 409, 409]
    found = await answered(client, chat)
    assert "sent hey" in found["messages"][-1]["text"]
    assert Path("sent.txt").read_text() == "hey\n"


async def test_no_means_that_it_is_not_called_and_the_model_reads_why(client: Client) -> None:
    chat = await begin(client)
    await say(client, chat, SEND)
    await answer(client, chat, "no")

    found = await answered(client, chat)

    assert not Path("sent.txt").exists()
    assert "did not approve" in found["messages"][-1]["text"]
    assert "did not approve" in found["messages"][-1]["tools"][0]["error"]


async def test_always_holds_for_one_function_of_one_conversation(client: Client) -> None:
    chat, other = await begin(client), await begin(client)
    await say(client, chat, SEND)
    await answer(client, chat, "always")
    await answered(client, chat)
    await say(client, chat, SEND)
    await answered(client, chat)
    assert Path("sent.txt").read_text() == "hey\n" * 2

    await say(client, other, SEND)

    assert (await question_of(client, other))["function"] == "tools-send"


async def test_one_turn_is_taken_at_a_time_and_can_be_stopped(client: Client) -> None:
    chat = await begin(client)
    await say(client, chat, "slow")

    await client.post(f"/chats/{chat}/messages", 409, {"text": "Are you there?"})
    await client.post(f"/chats/{chat}/stop", 202)

    stopped = await answered(client, chat)
    assert (stopped["messages"], stopped["failed"]["text"]) == ([], "slow")
    await say(client, chat, "Are you there?")
    assert len((await answered(client, chat))["messages"]) == 2


async def test_a_turn_that_fails_is_told_and_the_conversation_continues(client: Client) -> None:
    chat = await begin(client)
    await say(client, chat, "fail")
    failed = await answered(client, chat)
    assert failed["failed"]["message"] == "The parrot is asleep."

    await say(client, chat, "Good morning")

    assert (await answered(client, chat))["failed"] is None


async def test_what_a_search_found_is_cited_also_after_a_restart(folder: Path) -> None:
    async with workshop(folder) as client:
        chat = await begin(client)
        await say(client, chat, 'call shelf-GetTextSearchResults {"query": "ports"}')
        before = await answered(client, chat)
        assert before["messages"][-1]["citations"][0]["name"] == "ports.md"
    async with workshop(folder) as client:
        assert (await client.get("/chats"))["chats"][0] | {"updated_at": ""} == {
            "chat": chat,
            "title": 'call shelf-GetTextSearchResults {"query": "ports"}',
            "updated_at": "",
            "busy": False,
        }
        assert await client.get(f"/chats/{chat}") == before
        await say(client, chat, 'call shelf-GetTextSearchResults {"query": "again"}')
        after = await answered(client, chat)
        assert after["messages"][-1]["citations"] == before["messages"][-1]["citations"]
        assert len(after["messages"]) == 4


async def test_passages_are_numbered_in_each_conversation_by_itself(client: Client) -> None:
    chats = [await begin(client) for _ in range(2)]
    for chat in chats:
        await say(client, chat, 'call shelf-GetTextSearchResults {"query": "ports"}')
    ends = [await answered(client, chat) for chat in chats]

    assert [each["messages"][-1]["citations"][0]["number"] for each in ends] == [1, 1]


async def test_the_end_of_the_server_answers_an_open_question_with_no(folder: Path) -> None:
    async with workshop(folder) as client:
        chat = await begin(client)
        await say(client, chat, SEND)
        await question_of(client, chat)
    assert not Path("sent.txt").exists()


async def test_a_conversation_is_removed_with_its_files(client: Client, folder: Path) -> None:
    chat = await begin(client)
    await say(client, chat, "Good day")
    await answered(client, chat)
    assert len(list((folder / "state" / "portico" / "chats").iterdir())) == 2

    assert (await client.http.delete(f"/api/chats/{chat}")).status_code == 204

    assert list((folder / "state" / "portico" / "chats").iterdir()) == []
    await client.get(f"/chats/{chat}", 404)


@pytest.mark.parametrize("name", ["nothing", "..%5c", "a" * 24, "0" * 24])
async def test_there_is_no_conversation_of_another_name(client: Client, name: str) -> None:
    await client.get(f"/chats/{name}", 404)
    await client.post(f"/chats/{name}/messages", 404, {"text": "hey"})


async def test_what_is_said_is_checked(client: Client) -> None:
    chat = await begin(client)
    await client.post(f"/chats/{chat}/messages", 422, {"text": " "})
    await client.post(f"/chats/{chat}/messages", 422, {"text": "x" * 70_000})
    await client.post(f"/chats/{chat}/answers", 422, {"question": "q", "answer": "perhaps"})
    await client.post(f"/chats/{chat}/answers", 409, {"question": "q", "answer": "yes"})


async def test_no_more_conversations_are_in_memory_than_there_may_be(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portico_serve._chats.MOST_CHATS", 2)
    first, second = await begin(client), await begin(client)
    for chat in (first, second):
        await say(client, chat, "slow")
    assert "in use" in (await client.post("/chats", 503))["error"]["message"]
    Path("on").touch()
    for chat in (first, second):
        await answered(client, chat)

    third = await begin(client)

    assert (await client.get(f"/chats/{first}"))["messages"][0]["text"] == "slow"
    assert third not in (first, second)


async def test_a_turn_that_is_stopped_before_it_begins_leaves_the_conversation_free(client: Client) -> None:
    chat = await begin(client)
    client.desk.chats.send(chat, "slow")

    await client.desk.chats.stop(chat)

    await say(client, chat, "hello")
    assert (await answered(client, chat))["messages"][-1]["text"] == "You said: hello"


async def test_a_conversation_that_cannot_be_read_can_be_deleted(folder: Path) -> None:
    async with workshop(folder) as client:
        chat = await begin(client)
        await say(client, chat, "hello")
        await answered(client, chat)
    [file] = (folder / "state").rglob(f"{chat}.json")
    file.write_text("{")
    async with workshop(folder) as client:
        assert (await client.http.delete(f"/api/chats/{chat}")).status_code == 204
        assert (await client.get("/chats"))["chats"] == []
        assert not file.exists()

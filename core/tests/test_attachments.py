"""What a user attaches reaches the model: a picture as it is, a text in words where the service takes no files."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from portico import Audio, ChatCapabilities, ChatRequest, File, Image, Kernel, Message, Policy, Text, Usage, function
from portico._chat.attaching import fit
from portico._runs.outcome import Paused
from portico.errors import LimitExceeded, StepFailed, UnsupportedOption
from portico.plans import Answer, Asking, Budget, From, Plan, Step, Value
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.run_store import MemoryRunStore

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SEES = ChatCapabilities(images=True)


class AskingPlanner:
    """Answers with what its model says."""

    name = "asking"
    asks_model = True

    def __init__(self, chat):
        self.chat = chat

    async def propose(self, task, *, emit):
        reply = await Asking.ask(self.chat, Asking.request([Message.of("user", task.goal)], Asking.Settings()), emit)
        return Answer(reply.text)


class SilentPlanner:
    name = "silent"

    async def propose(self, task, *, emit):
        return Answer("No.")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.png", PIXEL, Image(PIXEL)),
        ("a", b"\xff\xd8\xff\xe0 jpeg", Image(b"\xff\xd8\xff\xe0 jpeg", media_type="image/jpeg")),
        ("a.txt", PIXEL, Image(PIXEL)),
        ("a.wav", b"RIFF....WAVEfmt ", Audio(b"RIFF....WAVEfmt ")),
        ("a.pdf", b"%PDF-1.7", File(b"%PDF-1.7", "a.pdf", "application/pdf")),
        ("a.svg", b"<svg/>", File(b"<svg/>", "a.svg", "image/svg+xml")),
        ("Makefile", b"all:\n", File(b"all:\n", "Makefile", "text/plain")),
        ("notes", b"A great WAVE of ID3 tags", File(b"A great WAVE of ID3 tags", "notes", "text/plain")),
        ("ids", b"ID3,name\n", File(b"ID3,name\n", "ids", "text/plain")),
        ("songs.m3u", b"#EXTM3U", File(b"#EXTM3U", "songs.m3u", "text/plain")),
        ("empty.png", b"", File(b"", "empty.png", "text/plain")),
        ("wide", "wide".encode("utf-16"), File("wide".encode("utf-16"), "wide", "text/plain")),
        ("song", b"ID3\x04\0\xff", Audio(b"ID3\x04\0\xff", media_type="audio/mpeg")),
        ("core", b"\x7fELF\0", File(b"\x7fELF\0", "core", "application/octet-stream")),
    ],
)
def test_a_file_is_what_its_content_says_and_else_its_name(name, content, expected, tmp_path: Path):
    (tmp_path / name).write_bytes(content)
    assert Message.of("user", "Look:", tmp_path / name).content == (Text("Look:"), expected)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")), st.text(min_size=1))
def test_a_text_becomes_words_that_cannot_end_their_own_block(words: str, name: str):
    request = ChatRequest([Message.of("user", File(words.encode(), name, "text/plain"), "Sum up.")])
    (message,) = fit(request, ChatCapabilities()).messages
    written, asked = message.content
    assert isinstance(written, Text)
    assert written.text.count("<") == written.text.count(">") == 2
    assert asked == Text("Sum up.")
    assert fit(request, ChatCapabilities(files=True)).messages == tuple(request.messages)


async def test_a_picture_goes_with_the_goal_and_is_in_the_journal():
    chat, store = ScriptedChat("A pixel.", capabilities=SEES), MemoryRunStore()
    kernel = Kernel(run_store=store)
    run = await kernel.run_goal("What is it?", planner=AskingPlanner(chat), context={"attached": [Image(PIXEL)]})
    assert run.outcome.text == "A pixel."
    (message,) = chat.requests[0].messages
    assert message.content == (Text("What is it?"), Image(PIXEL))
    first, *_ = await store.read((await store.runs())[0])
    assert first["context"]["attached"] == [
        {"type": "image", "data": base64.b64encode(PIXEL).decode(), "media_type": "image/png"}
    ]


async def test_it_stays_with_the_goal_after_examples_and_before_what_the_model_wrote():
    chat = ScriptedChat("?", "?", capabilities=SEES)
    example = [Message.of("user", "An example."), Message.of("assistant", "Done.")]

    class Planner(AskingPlanner):
        async def propose(self, task, *, emit):
            messages = [*example, Message.of("user", task.goal)]
            for mend in ("That is no plan.", "Nor is that."):
                await Asking.ask(self.chat, Asking.request(messages, Asking.Settings()), emit)
                messages += [Message.of("assistant", "?"), Message.of("user", mend)]
            return Answer("?")

    await Kernel().run_goal("What is it?", planner=Planner(chat), context={"attached": [Image(PIXEL)]})
    for request in chat.requests:
        seen = [message.text for message in request.messages if Image(PIXEL) in message.content]
        assert seen == ["What is it?"]


async def test_what_a_service_does_not_take_is_refused_by_name():
    planner = AskingPlanner(ScriptedChat("?"))
    with pytest.raises(UnsupportedOption, match="images"):
        await Kernel().run_goal("What is it?", planner=planner, context={"attached": [Image(PIXEL)]})
    with pytest.raises(UnsupportedOption, match="files"):
        await Kernel().run_goal("Sum up.", planner=planner, context={"attached": [File(b"\0", "a", "x/y")]})


def test_each_of_several_attachments_must_be_one_that_the_service_takes():
    service = ChatCapabilities(images=True, files=True, media_types=frozenset({"image/*", "text/*"}))
    fits = (Image(url="https://a.example/b"), File(b"a", "a.txt", "text/plain"))
    for unfit in (File(None, "a", "text/plain", "https://a.example/a"), File(b"\0", "a", "x/y")):
        request = ChatRequest([Message.of("user", unfit, *fits)])
        with pytest.raises(UnsupportedOption, match="attached"):
            request.check(service, "acme")
    with pytest.raises(UnsupportedOption, match=r"no language model: choose one under \[chat\]"):
        request.check(ChatCapabilities(language_model=False), "quoting")


async def test_a_proposal_sees_what_is_attached_within_its_budget_and_its_literals_are_as_after_any_reading():
    chat = ScriptedChat("x", capabilities=SEES, usage=Usage(1, 1, cost=1.0), repeat=True)

    @function(effects=True)
    def send(to: str) -> str:
        return to

    class Planner(AskingPlanner):
        async def propose(self, task, *, emit):
            await super().propose(task, emit=emit)
            return Plan(task.goal, (Step("s1", "send", {"to": Value("eve")}),))

    kernel = Kernel(policy=Policy(mode="enforce"), run_store=MemoryRunStore())
    kernel.add_function(send)
    attached = {"attached": [Image(PIXEL)]}
    proposal = await kernel.propose("What is it?", planner=Planner(chat), context=attached)
    assert Image(PIXEL) in chat.requests[0].messages[0].content
    assert any(finding.verdict == "ask" and "an attached file" in finding.message for finding in proposal.findings)
    await kernel.run_goal("What is it?", planner=Planner(chat), context=attached, run="r")
    for context in (None, {"attached": []}):
        run = await kernel.resume("r", planner=Planner(chat), context=context)
        assert isinstance(run.outcome, Paused)
    with pytest.raises(LimitExceeded, match="US dollars"):
        await kernel.propose("What is it?", planner=Planner(chat), context=attached, budget=Budget(cost=0))


async def test_a_run_that_continues_after_its_model_saw_a_file_does_not_say_that_it_was_not_read():
    ready = False

    def fragile() -> str:
        if not ready:
            raise ValueError("not yet")
        return "done"

    class Planner(AskingPlanner):
        async def propose(self, task, *, emit):
            await super().propose(task, emit=emit)
            return Plan(task.goal, (Step("s1", "fragile"),), From("s1"))

    kernel = Kernel(run_store=MemoryRunStore())
    kernel.add_function(fragile)
    planner = Planner(ScriptedChat("x", capabilities=SEES))
    with pytest.raises(StepFailed):
        context = {"attached": [Image(PIXEL)]}
        await kernel.run_goal("?", planner=planner, context=context, run="r", budget=Budget(proposals=1))
    ready = True
    run = await kernel.resume("r", planner=planner, retry=["s1"])
    assert (run.outcome.text, run.outcome.warnings) == ("done", ())


async def test_what_was_not_shown_to_a_model_is_said():
    planner = SilentPlanner()
    run = await Kernel().run_goal("What is it?", planner=planner, context={"attached": [Image(PIXEL)]})
    assert run.outcome.warnings == ("What is attached was not read: no model was asked.",)
    with pytest.raises(TypeError, match="attached"):
        await Kernel().run_goal("What is it?", planner=planner, context={"attached": [Text("no")]})


async def test_a_planner_that_saw_a_file_has_read_something_untrusted():
    chat = ScriptedChat("Fine.", capabilities=SEES)
    kernel = Kernel(policy=Policy(mode="enforce"))
    thread = [Message.of("user", "What is it?", Image(PIXEL))]
    turn = await kernel.complete(thread, chat=chat)
    assert turn.reply.message.untrusted == ("an attached file",)

"""Prompts in files: what makes one, what its settings mean, and how it is asked."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from portico import ChatCapabilities, Function, Kernel, Prompt, function as mark
from portico.errors import ConfigurationError, PluginNotInstalled
from portico.ports import ChatService, SchemaValidator, TemplateLanguage
from portico_basics.config import PromptFilesSettings
from portico_basics.prompts.functions import PromptFiles
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.fakes.services import FixedServices

NO_BLOCK = "A block holds a $variable, a 'value' or plugin.function; a name has letters, digits and '_' only."


class Language:
    """Stands for an installed template language."""

    variables = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def compile(self, source: str, *, name: str = "prompt") -> Any:
        self.source = source
        return self

    async def render(self, arguments: Any, *, call: Any) -> str:
        return Prompt([(f"{self.name}: {self.source} {arguments['name']}", False)])


def written(folder: Path, files: dict[str, str]) -> PromptFiles:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return PromptFiles(PromptFilesSettings(path=folder))


async def only(folder: Path, files: dict[str, str]) -> Function:
    source = written(folder, files)
    plugin = await source.load("writer")
    assert source.lost == (), f"lost: {'; '.join(map(str, source.lost))}"
    [function] = plugin
    return function


@pytest.mark.parametrize("name", ["prompt.txt", "prompt.sk", "skprompt.txt"])
async def test_a_folder_with_a_template_is_a_function_of_its_name(tmp_path: Path, name: str) -> None:
    function = await only(tmp_path, {f"Tell-a story/{name}": "\ufeffTell of {{$topic}}.\r\n"})
    assert function.full_name == "writer-Tell_a_story"
    assert function.spec.parameters["required"] == ["topic"]
    chat = ScriptedChat("Once.")
    kernel = Kernel(FixedServices({ChatService: chat}))
    assert await kernel.invoke(kernel.add_function(function), topic="cats") == "Once."
    assert chat.requests[0].messages[0].text == "Tell of cats.\n"


async def test_settings_in_our_terms_say_everything(tmp_path: Path) -> None:
    settings = """\
name: Answer
description: Answer a question.
inputs:
  question: What is asked.
  history: {trusted: true, default: ""}
  words: {type: integer, default: 100, description: How many words.}
  tags: {schema: {type: array, items: {type: string}}, required: false}
returns: {type: object, properties: {answer: {type: string}}, required: [answer]}
temperature: 0.5
max_tokens: 300
stop: [END]
chat: cheap
functions: [Clock]
tool_choice: auto
effects: true
tags: [writing]
"""
    template = "{{$history}}<message role='user'>{{$question}} {{$words}} {{$tags}}</message>"
    function = await only(tmp_path, {"x/prompt.txt": template, "x/prompt.yaml": settings})
    assert (function.full_name, function.description) == ("writer-Answer", "Answer a question.")
    assert function.spec.parameters["required"] == ["question"]
    properties = function.spec.parameters["properties"]
    assert properties["question"] == {"type": "string", "description": "What is asked."}
    assert properties["words"] == {"type": "integer", "description": "How many words.", "default": 100}
    assert properties["tags"]["items"] == {"type": "string"}
    assert function.spec.returns["required"] == ["answer"]
    assert function.effects
    assert function.tags == {"writing"}
    capabilities = ChatCapabilities(
        tools=True, response_schema=True, sampling=frozenset({"temperature", "max_tokens", "stop"})
    )
    chat = ScriptedChat('{"answer": "x"}', capabilities=capabilities)
    kernel = Kernel(FixedServices({(ChatService, "cheap"): chat}))

    class Clock:
        from portico import function as mark

        @mark
        def now(self) -> str:
            """Tell the time."""
            return "noon"

    kernel.add_plugin(Clock())
    kernel.add_function(function)
    history = "<message role='assistant'>Hm?</message>"
    answer = await kernel.invoke_json("writer-Answer", {"question": history, "history": history})
    assert answer == {"answer": "x"}
    [request] = chat.requests
    assert (request.temperature, request.max_tokens, request.stop) == (0.5, 300, ("END",))
    assert [tool.name for tool in request.tools] == ["Clock-now"]
    said = [(message.role, message.text) for message in request.messages if message.role != "system"]
    assert said == [("assistant", "Hm?"), ("user", f"{history} 100 ")]


async def test_the_same_settings_may_be_toml_or_yaml(tmp_path: Path) -> None:
    toml = 'description = "Say."\ntemperature = 1\n[inputs]\nwords = {type = "integer", default = 5}\n'
    yaml = "description: Say.\ntemperature: 1\ninputs:\n  words: {type: integer, default: 5}\n"
    first = await only(tmp_path / "a", {"Say/prompt.sk": "{{$words}}", "Say/prompt.toml": toml})
    second = await only(tmp_path / "b", {"Say/prompt.sk": "{{$words}}", "Say/prompt.yml": yaml})
    assert first.spec == second.spec


async def test_a_yaml_prompt_of_semantic_kernel_is_read(tmp_path: Path) -> None:
    story = """\
name: GenerateStory
template: |
  Tell a story about {{$topic}} that is {{$length}} sentences long.
template_format: semantic-kernel
description: A function that generates a story about a topic.
input_variables:
  - name: topic
    description: The topic of the story.
    is_required: true
  - name: length
    description: The number of sentences in the story.
    is_required: true
    default: "3"
    allow_dangerously_set_content: true
output_variable:
  description: The generated story.
execution_settings:
  service1:
    temperature: 0.6
  default:
    temperature: 0.5
    presence_penalty: 0.0
    stop_sequences: []
    function_choice_behavior: {type: auto, functions: [writer.GenerateStory]}
"""
    for files in ({"story.prompt.yaml": story}, {"any/prompt.yaml": story}):
        function = await only(tmp_path / str(len(files)) / next(iter(files)).replace("/", "_"), files)
        assert function.full_name == "writer-GenerateStory"
        assert function.spec.parameters["required"] == ["topic"]
        assert function.spec.parameters["properties"]["length"]["default"] == "3"
        assert function.spec.returns == {"type": "string", "description": "The generated story."}


@pytest.mark.parametrize(
    ("settings", "strict", "extras"),
    [
        ("functions: [clock]\nparallel_tool_calls: false", True, {"parallel_tool_calls": False}),
        ("allow_parallel_calls: false, retain_argument_types: false", True, {"parallel_tool_calls": False}),
        ("allow_concurrent_invocation: true, allow_strict_schema_adherence: false", False, {}),
    ],
)
async def test_a_prompt_says_how_its_calls_are_made(
    tmp_path: Path, settings: str, strict: bool, extras: dict[str, bool]
) -> None:
    if "allow" in settings:
        choice = f"{{type: auto, functions: [clock], options: {{{settings}}}}}"
        settings = f"execution_settings: {{default: {{function_choice_behavior: {choice}}}}}"
    function = await only(tmp_path, {"x/prompt.txt": "When?", "x/prompt.yaml": settings})
    chat = ScriptedChat(
        "Now.", capabilities=ChatCapabilities(tools=True, strict=True, extras=frozenset({"parallel_tool_calls"}))
    )
    kernel = Kernel(FixedServices({ChatService: chat}))

    @mark
    def clock() -> str:
        """Tell the time."""
        return "noon"

    kernel.add_function(clock)
    await kernel.invoke(kernel.add_function(function))
    assert [tool.strict for tool in chat.requests[0].tools] == [strict]
    assert chat.requests[0].extras == extras


async def test_config_json_of_semantic_kernel_is_read_the_older_form_too(tmp_path: Path) -> None:
    newer = {
        "schema": 1,
        "type": "completion",
        "description": "Gets a joke",
        "execution_settings": {"default": {"max_tokens": 1000, "temperature": 0.9, "top_p": 0.0}},
        "input_variables": [{"name": "input", "description": "The subject", "default": ""}],
    }
    older = {
        "schema": 1,
        "description": "Gets a joke",
        "type": "completion",
        "completion": {"max_tokens": 1000, "temperature": 0.9, "top_p": 0.0, "presence_penalty": 0.0},
        "default_services": [],
        "input": {"parameters": [{"name": "input", "description": "The subject", "defaultValue": ""}]},
    }
    specs = []
    for number, config in enumerate((newer, older)):
        files = {"Joke/skprompt.txt": "A joke about {{$input}}", "Joke/config.json": json.dumps(config)}
        function = await only(tmp_path / str(number), files)
        specs.append(function.spec)
        sampling = frozenset({"temperature", "max_tokens", "top_p"})
        chat = ScriptedChat("Ha.", capabilities=ChatCapabilities(sampling=sampling))
        kernel = Kernel(FixedServices({ChatService: chat}))
        assert await kernel.invoke(kernel.add_function(function)) == "Ha."
        assert (chat.requests[0].temperature, chat.requests[0].max_tokens) == (0.9, 1000)
    assert specs[0] == specs[1]


@pytest.mark.parametrize(
    ("file", "language"),
    [
        ("prompt.hbs", "handlebars"),
        ("prompt.handlebars", "handlebars"),
        ("prompt.j2", "jinja2"),
        ("prompt.jinja2", "jinja2"),
        ("prompt.jinja", "jinja2"),
    ],
)
async def test_the_ending_says_the_language(tmp_path: Path, file: str, language: str) -> None:
    written(tmp_path, {f"Greet/{file}": "Hello"})
    chat = ScriptedChat("Hi.")
    services = FixedServices({(TemplateLanguage, language): Language(language), ChatService: chat})
    source = PromptFiles(PromptFilesSettings(path=tmp_path), services)
    kernel = Kernel(services)
    kernel.add_plugin(await source.load("p"))
    assert await kernel.invoke("p-Greet", name="Ada") == "Hi."
    assert chat.requests[0].messages[0].text == f"{language}: Hello Ada"


async def test_settings_may_say_the_language_of_a_text_file(tmp_path: Path) -> None:
    written(tmp_path, {"Greet/skprompt.txt": "Hello", "Greet/config.json": '{"template_format": "handlebars"}'})
    services = FixedServices({(TemplateLanguage, "handlebars"): Language("handlebars")})
    source = PromptFiles(PromptFilesSettings(path=tmp_path), services)
    assert [parameter.name for parameter in (await source.load("p"))["Greet"].parameters] == ["name"]


async def test_what_is_wrong_with_one_prompt_loses_that_one_and_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = written(tmp_path, {"Good/prompt.txt": "Hi", "Bad/prompt.txt": "One\n{{$}}", "Worse/README.md": ""})
    plugin = await source.load("writer")
    assert [function.name for function in plugin] == ["Good"]
    assert [lost.place for lost in source.lost] == ["Worse", "Bad/prompt.txt"]
    assert "line 2, column 3" in source.lost[1].reason
    [record] = caplog.records
    assert record.getMessage().split("\n")[0].endswith(": 2 of 3 prompts are lost.")
    assert record.getMessage().split("\n")[2:] == [
        f"  Bad/prompt.txt: line 2, column 3: {NO_BLOCK}",
        "    {{$}}",
        "      ^",
    ]


async def test_a_mistake_in_a_template_is_shown_where_it_stands(tmp_path: Path) -> None:
    source = written(tmp_path, {"Bad/prompt.txt": "One\n{{$}}", "Worse.prompt.yaml": "name: a\ntemplate: |\n  {{$}}\n"})
    await source.load("writer")
    assert [str(lost).split("\n") for lost in source.lost] == [
        [f"Bad/prompt.txt: line 2, column 3: {NO_BLOCK}", "  {{$}}", "    ^"],
        [f"Worse.prompt.yaml: line 1, column 3: {NO_BLOCK}", "  {{$}}", "    ^"],
    ]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
async def test_what_is_no_file_is_passed_over(tmp_path: Path) -> None:
    source = written(tmp_path, {"Good/prompt.txt": "Hi", "Pipe/README.md": ""})
    os.mkfifo(tmp_path / "pipe.prompt.yaml")
    os.mkfifo(tmp_path / "Pipe" / "prompt.txt")
    assert [function.name for function in await asyncio.wait_for(source.load("p"), 30)] == ["Good"]
    assert [lost.place for lost in source.lost] == ["Pipe"]


FOLDERS: dict[str, tuple[dict[str, str], str]] = {
    "two templates": ({"prompt.txt": "Hi", "prompt.hbs": "Hi"}, "two templates, prompt.txt and prompt.hbs"),
    "two settings": (
        {"prompt.txt": "Hi", "prompt.yaml": "", "config.json": "{}"},
        "two settings, prompt.yaml and config",
    ),
    "an empty template": ({"prompt.txt": " \n"}, "it has no template"),
    "a template twice": (
        {"prompt.txt": "Hi", "prompt.yaml": "template: x"},
        "prompt.yaml: template: prompt.txt is the",
    ),
    "no template": ({"prompt.yaml": "name: x"}, "it has no template"),
    "another language": ({"prompt.hbs": "Hi", "prompt.yaml": "language: jinja2"}, "language: 'jinja2' is not that of"),
    "no such language": ({"prompt.txt": "Hi", "prompt.yaml": "language: liquid"}, "liquid"),
    "not UTF-8": ({"prompt.txt": "\udcff"}, "prompt.txt: it is not UTF-8"),
    "too large": ({"prompt.txt": "x" * 1_000_001}, "prompt.txt: it has more than 1,000,000 bytes"),
    "broken YAML": ({"prompt.txt": "Hi", "prompt.yaml": "a: 1\nb: [\n"}, "prompt.yaml: this is not YAML"),
    "broken TOML": ({"prompt.txt": "Hi", "prompt.toml": "a = 1\nb = \n"}, "line 2"),
    "broken JSON": (
        {"prompt.txt": "Hi", "config.json": '{"a": 1,\n]'},
        "config.json: this is not JSON: Expecting property name enclosed in double quotes: line 2",
    ),
    "a list": ({"prompt.txt": "Hi", "prompt.yaml": "- a"}, "prompt.yaml: $: expected object, got array"),
    "a misspelt key": ({"prompt.txt": "Hi", "prompt.yaml": "temprature: 1"}, "('temprature' was unexpected)"),
    "a wrong type": (
        {"prompt.txt": "Hi", "prompt.yaml": "temperature: hot"},
        "$.temperature: expected number, got string",
    ),
    "a truth as a number": (
        {"prompt.txt": "Hi", "prompt.yaml": "max_tokens: true"},
        "$.max_tokens: expected integer, got boolean",
    ),
    "no tokens": ({"prompt.txt": "Hi", "prompt.yaml": "max_tokens: 0"}, "$.max_tokens: expected at least 1, got 0"),
    "a wrong name": ({"prompt.txt": "Hi", "prompt.yaml": "name: a b"}, "$.name: expected a string that matches"),
    "a key of an input": (
        {"prompt.txt": "Hi", "prompt.yaml": "inputs: {a: {descripton: x}}"},
        "$.inputs.a: Additional",
    ),
    "a wrong default": (
        {"prompt.txt": "Hi", "prompt.yaml": "inputs: {a: {type: integer, default: x}}"},
        "the default of the input 'a': $: expected an integer, got 'x'",
    ),
    "a wrong schema": ({"prompt.txt": "Hi", "prompt.yaml": "inputs: {a: {schema: {type: text}}}"}, "'text'"),
    "a wrong schema of the answer": (
        {"prompt.txt": "Hi", "prompt.yaml": "returns: {type: objct}"},
        "'objct' is not a JSON Schema type",
    ),
    "a variable without a name": (
        {"prompt.txt": "Hi", "config.json": '{"input_variables": [{}]}'},
        "config.json: $.input_variables[0]: 'name' is a required property",
    ),
    "a model": (
        {"prompt.txt": "Hi", "config.json": '{"execution_settings": {"default": {"model_id": "gpt-4"}}}'},
        "$.execution_settings.default.model_id: expected ''",
    ),
    "settings for two services": (
        {"prompt.txt": "Hi", "config.json": '{"execution_settings": {"a": {}, "b": {}}}'},
        "none called 'default'",
    ),
    "a tag": ({"prompt.txt": "Hi", "prompt.yaml": "name: !!python/object:os.system x"}, "this is not YAML"),
    "a date in TOML": ({"prompt.txt": "Hi", "prompt.toml": "name = 2026-01-01"}, "write it as text, in quotes"),
    "deep YAML": ({"prompt.txt": "Hi", "prompt.yaml": "a: " + "[" * 900}, "nests deeper than 64 levels"),
    "deep JSON": ({"prompt.txt": "Hi", "config.json": "[" * 1_900}, "config.json: "),
    "itself": ({"prompt.txt": "Hi", "prompt.yaml": "inputs: &a {a: *a}"}, "aliases (*a) are not read"),
    "aliases": (
        {
            "prompt.txt": "Hi",
            "prompt.yaml": "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)),
        },
        "aliases (*a0) are not read",
    ),
}


@pytest.mark.parametrize(("files", "words"), FOLDERS.values(), ids=FOLDERS)
async def test_a_prompt_that_cannot_be_used_says_why_with_file_and_key(
    tmp_path: Path, files: dict[str, str], words: str
) -> None:
    folder = tmp_path / "Bad"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8", errors="surrogateescape")
    (tmp_path / "Good").mkdir()
    (tmp_path / "Good" / "prompt.txt").write_text("Hi")
    source = PromptFiles(PromptFilesSettings(path=tmp_path), FixedServices({}))
    assert [function.name for function in await source.load("p")] == ["Good"]
    [lost] = source.lost
    assert lost.place.split("/")[0] == "Bad"
    assert words in str(lost)
    assert len(str(lost)) < 500


@pytest.mark.parametrize(
    ("folder", "name"), [("Résumé-court", "Resume_court"), ("ﬁnd it!", "find_it"), ("2024", "2024")]
)
async def test_the_name_of_a_folder_becomes_one_of_a_function(tmp_path: Path, folder: str, name: str) -> None:
    assert (await only(tmp_path, {f"{folder}/prompt.txt": "Hi"})).name == name


async def test_of_two_prompts_of_one_name_the_second_is_lost(tmp_path: Path) -> None:
    source = written(tmp_path, {"A/prompt.txt": "1", "B/prompt.txt": "2", "B/prompt.yaml": "name: A"})
    assert [function.name for function in await source.load("p")] == ["A"]
    assert "the name 'A' is taken by A/prompt.txt" in str(source.lost[0])


async def test_a_directory_without_prompts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("")
    (tmp_path / ".git").mkdir()
    (tmp_path / "__pycache__").mkdir()
    with pytest.raises(ConfigurationError, match="holds no prompts"):
        await PromptFiles(PromptFilesSettings(path=tmp_path)).load("p")
    with pytest.raises(ConfigurationError, match="cannot be read: Not a directory"):
        await PromptFiles(PromptFilesSettings(path=tmp_path / "notes.md")).load("p")


async def test_the_validator_of_the_services_is_used(tmp_path: Path) -> None:
    class Validator:
        name = "validator"

        def compile(self, schema: Any) -> Any:
            return lambda value: [] if value == "right" else ["$: expected what is right, got another"]

    written(tmp_path, {"A/prompt.txt": "Hi", "A/prompt.yaml": "inputs: {a: {schema: {type: string, minLength: 3}}}"})
    source = PromptFiles(PromptFilesSettings(path=tmp_path), FixedServices({SchemaValidator: Validator()}))
    function = (await source.load("p"))["A"]
    assert function.structure_arguments({"a": "right"}) == {"a": "right"}
    with pytest.raises(Exception, match="a: expected what is right"):
        function.structure_arguments({"a": "wrong"})
    alone = PromptFiles(PromptFilesSettings(path=tmp_path))
    await alone.load("p")
    assert "The schema keyword 'minLength'" in str(alone.lost[0])


async def test_a_language_that_is_not_installed_loses_its_prompts_with_advice(tmp_path: Path) -> None:
    class Services(FixedServices):
        def get(self, port: Any, name: str | None = None) -> Any:
            raise PluginNotInstalled("Template language 'handlebars' is not installed. Run `pip install …`.")

    written(tmp_path, {"A/prompt.hbs": "Hi", "B/prompt.txt": "Hi"})
    source = PromptFiles(PromptFilesSettings(path=tmp_path), Services({}))
    assert [function.name for function in await source.load("p")] == ["B"]
    assert "is not installed" in str(source.lost[0])

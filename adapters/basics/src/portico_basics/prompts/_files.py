"""Finding the prompts of a directory and reading their files; what is wrong with one loses that one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unicodedata import combining, normalize

from portico.errors import ConfigurationError, nearest
from portico_basics.prompts._documents import read_document
from portico_basics.prompts._wrong import Fields, Wrong, described


@dataclass(frozen=True, slots=True)
class Input:
    """One input: a JSON Schema and, where it may be left out, what stands for it."""

    schema: Mapping[str, Any]
    description: str = ""
    required: bool = True
    default: Any = None
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """The settings of one prompt; None is what the file does not say. ``options`` are those of a turn."""

    name: str | None = None
    description: str = ""
    language: str | None = None
    template: str | None = None
    inputs: Mapping[str, Input] = field(default_factory=dict)
    returns: Mapping[str, Any] | None = None
    effects: bool = False
    tags: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


_NEUTRAL = {"presence_penalty": 0, "frequency_penalty": 0, "results_per_prompt": 1, "number_of_responses": 1}
_PENALTIES = ("presence_penalty", "frequency_penalty")


def variables_as_inputs(fields: Fields, key: str) -> dict[str, dict[str, Any]]:
    """Return the variables of ``input_variables``, or of the older ``input.parameters``, as inputs in our terms."""
    if key == "input":
        outer = Fields(fields.any(key), fields.place(key))
        variables = outer.listing("parameters") or []
        place = outer.place("parameters")
        outer.finish()
    else:
        variables = fields.listing(key) or []
        place = fields.place(key)
    made: dict[str, dict[str, Any]] = {}
    for index, variable in enumerate(variables):
        given = Fields(variable, f"{place}[{index}]")
        name = given.text("name")
        if not name:
            raise given.wrong("name", "a variable needs a name")
        if name in made:
            raise given.wrong("name", f"{described(name)} stands twice")
        made[name] = _input(given)
    return made


def _input(given: Fields) -> dict[str, Any]:
    default_key = given.one_of("default", "defaultValue")
    schema = given.any("json_schema")
    made: dict[str, Any] = {
        "description": given.text("description"),
        "schema": schema or None,
        "trusted": given.flag("allow_dangerously_set_content"),
    }
    if default_key in given:
        default = given.any(default_key)
        if default is not None:
            made["default"] = default
    required = given.flag(given.one_of("is_required", "required"))
    # There, a default counts whatever is_required says, which is true unless written.
    made["required"] = None if "default" in made else required
    given.any("sample")
    given.any("is_sensitive")
    given.finish()
    return made


def execution_options(fields: Fields, key: str) -> dict[str, Any]:
    """Return the options of a turn that ``execution_settings`` holds: those called default, or the only ones.

    Settings under the name of a service choose that chat service. The older ``completion`` holds them directly.
    """
    value = fields.table(key)
    if not value:
        return {}
    place = fields.place(key)
    if key == "completion":
        return _options(Fields(value, place), None)
    if "default" not in value and len(value) > 1:
        raise Wrong(f"{place}: there are settings for {', '.join(map(repr, value))}, and none called 'default'")
    service = "default" if "default" in value else next(iter(value))
    return _options(Fields(value[service], f"{place}.{service}"), None if service == "default" else service)


def _options(fields: Fields, service: str | None) -> dict[str, Any]:
    named = fields.text("service_id") or None
    if service is not None and named not in (None, service):
        raise fields.wrong("service_id", f"it stands under another name: {service!r}")
    if fields.text("model_id"):
        raise fields.wrong("model_id", "a prompt chooses no model here: name a configured chat service as 'chat'")
    options: dict[str, Any] = {
        "chat": named if named != "default" else None,
        "temperature": fields.number("temperature"),
        "top_p": fields.number("top_p"),
        "max_tokens": fields.integer("max_tokens", 1),
        "stop": fields.texts("stop_sequences") or None,
        "seed": fields.integer("seed"),
        **_function_choice(fields),
    }
    options["chat"] = options["chat"] or service
    extras = {}
    for key, neutral in _NEUTRAL.items():
        number = fields.number(key)
        if number is not None and number != neutral:
            if key not in _PENALTIES:
                raise fields.wrong(key, "a prompt has one answer")
            extras[key] = number
    if extras:
        options["extras"] = extras
    fields.finish()
    return {key: value for key, value in options.items() if value is not None}


def _function_choice(fields: Fields) -> dict[str, Any]:
    value = fields.table("function_choice_behavior")
    if value is None:
        return {}
    given = Fields(value, fields.place("function_choice_behavior"))
    mode = given.choice("type", ("auto", "required", "none"))
    functions = given.texts("functions")
    given.finish()
    if mode is None:
        raise given.wrong("type", "expected auto, required or none")
    return {"tool_choice": mode, "functions": functions}


_NAME = re.compile(r"[0-9A-Za-z_]+")
_TYPES = ("string", "integer", "number", "boolean", "array", "object")
_MODES = ("auto", "required", "none")


def read_settings(document: object) -> PromptSettings:
    """Return what a document says; raises `Wrong` for the first key that is not known or does not fit."""
    fields = Fields({} if document is None else document, "")
    # Semantic Kernel writes its own version format, and what the prompt is for.
    if fields.integer("schema") not in (None, 1):
        raise fields.wrong("schema", "only version 1 of Semantic Kernel's format is known")
    fields.choice("type", ("completion",))
    name = fields.text("name") or None
    if name is not None and not _NAME.fullmatch(name):
        raise fields.wrong("name", f"a function's name has letters, digits and '_' only, not {described(name)}")
    settings = PromptSettings(
        name=name,
        description=(fields.text("description") or "").strip(),
        language=fields.text(fields.one_of("language", "template_format")) or None,
        template=fields.text("template"),
        inputs=_inputs(fields),
        returns=_returns(fields),
        effects=fields.flag("effects") or False,
        tags=fields.texts("tags") or (),
        options=_function_options(fields),
    )
    fields.finish()
    return settings


def _inputs(fields: Fields) -> dict[str, Input]:
    key = fields.one_of("inputs", "input_variables", "input")
    if key == "inputs":
        given: Mapping[str, Any] = fields.table(key) or {}
    else:
        given = variables_as_inputs(fields, key)
    everything = fields.flag("allow_dangerously_set_content")
    made = {}
    for name, value in given.items():
        place = fields.place(f"{key}.{name}")
        if not _NAME.fullmatch(name):
            raise Wrong(f"{place}: the name of an input has letters, digits and '_' only")
        made[name] = _function_input(value, place, trusted=everything or False)
    folded = [name.casefold() for name in made]
    twice = next((name for name in made if folded.count(name.casefold()) > 1), None)
    if twice is not None:
        raise Wrong(f"{fields.place(key)}.{twice}: names of inputs differ in more than case")
    return made


def _function_input(value: object, place: str, *, trusted: bool) -> Input:
    """Read one input: a table, or a description alone."""
    if type(value) is str:
        return Input({"type": "string"}, value, trusted=trusted)
    fields = Fields({} if value is None else value, place)
    schema = _schema(fields, "type", "schema")
    has_default = "default" in fields
    default = fields.any("default")
    required = fields.flag("required")
    if required and has_default:
        raise fields.wrong("required", "an input with a default is not required: leave one of both out")
    made = Input(
        schema,
        (fields.text("description") or "").strip(),
        not has_default if required is None else required,
        default,
        fields.flag("trusted") or trusted,
    )
    fields.finish()
    return made


def _schema(fields: Fields, type_key: str, schema_key: str) -> dict[str, Any]:
    """Read a type by its name, or a JSON Schema."""
    schema = _json_schema(fields, schema_key)
    kind = fields.choice(type_key, _TYPES)
    if kind is not None and schema is not None:
        raise fields.wrong(type_key, f"{schema_key!r} says it already: leave one of both out")
    return schema or {"type": kind or "string"}


def _json_schema(fields: Fields, key: str) -> dict[str, Any] | None:
    """Take a JSON Schema, as a table or as JSON text."""
    value = fields.any(key)
    if type(value) is str:
        from portico_basics.prompts._documents import read_document

        try:
            value = read_document(value, "json")
        except Wrong as error:
            raise fields.wrong(key, str(error)) from error
    if value is not None and type(value) is not dict:
        raise fields.wrong(key, f"expected a JSON Schema, got {described(value)}")
    return value


def _returns(fields: Fields) -> dict[str, Any] | None:
    key = fields.one_of("returns", "output_variable")
    value = fields.any(key)
    if value is None:
        return None
    if key == "returns":
        if type(value) is str and value in _TYPES:
            return {"type": value}
        if type(value) is not dict:
            raise fields.wrong(key, f"expected a JSON Schema or one of {', '.join(_TYPES)}, got {described(value)}")
        return value
    output = Fields(value, key)
    output.text("name")
    schema = _json_schema(output, "json_schema") or {"type": "string"}
    description = output.text("description")
    output.finish()
    return {**schema, "description": description} if description else schema


def _function_options(fields: Fields) -> dict[str, Any]:
    options: dict[str, Any] = {
        "temperature": fields.number("temperature"),
        "top_p": fields.number("top_p"),
        "max_tokens": fields.integer("max_tokens", 1),
        "stop": fields.texts("stop"),
        "seed": fields.integer("seed"),
        "chat": fields.text("chat") or None,
        "functions": fields.texts("functions"),
        "tool_choice": fields.choice("tool_choice", _MODES),
        "extras": fields.table("extras"),
    }
    options = {key: value for key, value in options.items() if value is not None}
    key = fields.one_of("execution_settings", "completion")
    theirs = execution_options(fields, key)
    both = sorted(options.keys() & theirs.keys())
    if both:
        raise fields.wrong(both[0], f"{key!r} says it too: leave one of both out")
    fields.texts("default_services")
    return {**options, **theirs}


OWN_LANGUAGE = "semantic-kernel"
MOST_PROMPTS = 2_000

_LANGUAGES = {
    ".txt": OWN_LANGUAGE,
    ".sk": OWN_LANGUAGE,
    ".hbs": "handlebars",
    ".handlebars": "handlebars",
    ".j2": "jinja2",
    ".jinja2": "jinja2",
    ".jinja": "jinja2",
}
_TEMPLATES = {**{f"prompt{suffix}": language for suffix, language in _LANGUAGES.items()}, "skprompt.txt": OWN_LANGUAGE}
_SETTINGS = {"prompt.yaml": "yaml", "prompt.yml": "yaml", "prompt.toml": "toml", "config.json": "json"}
_SINGLE = {".prompt.yaml": "yaml", ".prompt.yml": "yaml", ".prompt.toml": "toml"}
_NOT_IN_A_NAME = re.compile(r"[^0-9A-Za-z_]+")


@dataclass(frozen=True, slots=True)
class LostPrompt:
    """A prompt that cannot be used, by its folder or file, and why."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A prompt as it was read: its name, its template and its language.

    ``place`` is its file, ``settings_place`` that of its settings, ``source`` what errors of the template call it.
    """

    place: str
    settings_place: str
    source: str
    name: str
    template: str
    language: str
    settings: PromptSettings


def read_prompts(directory: Path, most_bytes: int) -> tuple[list[PromptFile], list[LostPrompt]]:
    """Return the prompts of a directory by their names, and those that are lost.

    Raises ``ConfigurationError`` when the directory cannot be read, or holds no prompt at all.
    """
    try:
        entries = sorted(each for each in directory.iterdir() if each.name[0] not in "._")
        found = [each for each in entries if each.is_dir() or (_single(each) and each.is_file())]
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(f"The directory of prompts {directory} cannot be read: {reason}.") from error
    if not found:
        raise ConfigurationError(
            f"The directory {directory} holds no prompts: each is a folder with a file such as prompt.txt, "
            "or a file NAME.prompt.yaml."
        )
    if len(found) > MOST_PROMPTS:
        raise ConfigurationError(f"The directory {directory} holds {len(found):,} prompts; at most {MOST_PROMPTS:,}.")
    prompts: dict[str, PromptFile] = {}
    lost: list[LostPrompt] = []
    for entry in found:
        try:
            prompt = _read_folder(entry, most_bytes) if entry.is_dir() else _read_single(entry, most_bytes)
            if prompt.name in prompts:
                raise Wrong(f"the name {prompt.name!r} is taken by {prompts[prompt.name].place}")
            prompts[prompt.name] = prompt
        except Wrong as error:
            lost.append(LostPrompt(entry.name, str(error)))
        except OSError as error:
            lost.append(LostPrompt(entry.name, f"it cannot be read: {error.strerror or type(error).__name__}"))
    return list(prompts.values()), lost


def _single(path: Path) -> str | None:
    """Return the ending of a file that holds a prompt and its settings."""
    return next((end for end in _SINGLE if path.name.endswith(end) and path.name != end), None)


def _read_single(path: Path, most_bytes: int) -> PromptFile:
    ending = _single(path)
    assert ending is not None  # noqa: S101 - only such files are looked for
    settings = _settings(path, _SINGLE[ending], most_bytes, "")
    return _made(path.name, "template", path.name.removesuffix(ending), settings)


def _read_folder(folder: Path, most_bytes: int) -> PromptFile:
    files = sorted(each.name for each in folder.iterdir() if each.is_file())
    template = _only(files, _TEMPLATES, "templates")
    settings_file = _only(files, _SETTINGS, "settings")
    if template is None and settings_file is None:
        raise Wrong(f"it holds no prompt: {', '.join(_TEMPLATES)} or one of {', '.join(_SETTINGS)}{_like(files)}")
    settings = PromptSettings()
    if settings_file is not None:
        settings = _settings(folder / settings_file, _SETTINGS[settings_file], most_bytes, f"{settings_file}: ")
    if template is None:
        return _made(f"{folder.name}/{settings_file}", "template", folder.name, settings)
    if settings.template is not None:
        raise Wrong(f"{settings_file}: template: {template} is the template already: keep one")
    language = _TEMPLATES[template]
    if settings.language is not None and settings.language != language:
        if language != OWN_LANGUAGE:
            raise Wrong(f"{settings_file}: language: {settings.language!r} is not that of {template}, {language!r}")
        language = settings.language
    text = _text(folder / template, most_bytes, f"{template}: ")
    settings = replace(settings, template=text, language=language)
    settings_place = f"{folder.name}/{settings_file or template}"
    return _made(f"{folder.name}/{template}", "", folder.name, settings, settings_place)


def _made(
    place: str, key: str, natural: str, settings: PromptSettings, settings_place: str | None = None
) -> PromptFile:
    if settings.template is None:
        raise Wrong("it has no template: write it under the key 'template', or in a file such as prompt.txt beside it")
    if not settings.template.strip():
        raise Wrong("its template is empty")
    # An accent is its own letter in this form, and goes: Résumé is Resume.
    letters = "".join(letter for letter in normalize("NFKD", natural) if not combining(letter))
    name = settings.name or _NOT_IN_A_NAME.sub("_", letters).strip("_")
    if not name:
        raise Wrong("its name has no letters or digits; give it one with the key 'name'")
    source = f"{place}, {key}" if key else place
    language = settings.language or OWN_LANGUAGE
    return PromptFile(place, settings_place or place, source, name, settings.template, language, settings)


def _only(files: list[str], known: dict[str, str], noun: str) -> str | None:
    there = [name for name in known if name in files]
    if len(there) > 1:
        raise Wrong(f"it holds two {noun}, {' and '.join(there)}: keep one")
    return there[0] if there else None


def _like(files: list[str]) -> str:
    near = next(
        ((name, near[0]) for name in files if (near := nearest(name, [*_TEMPLATES, *_SETTINGS], count=1))), None
    )
    return f". Is {near[0]} meant to be {near[1]}?" if near else ""


def _settings(path: Path, kind: str, most_bytes: int, place: str) -> PromptSettings:
    text = _text(path, most_bytes, place)
    try:
        return read_settings(read_document(text, kind))
    except Wrong as error:
        raise Wrong(f"{place}{error}") from error


def _text(path: Path, most_bytes: int, place: str) -> str:
    with path.open("rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise Wrong(f"{place}it is larger than {most_bytes:,} bytes; the setting maximum_file_bytes allows more")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Wrong(f"{place}line {line}: it is not UTF-8: byte {content[error.start]:#04x}") from error

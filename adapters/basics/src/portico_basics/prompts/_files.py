"""The prompts of a directory. A prompt that cannot be read is left out, with the reason."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast
from unicodedata import combining, normalize

import yaml

from portico import PromptInput
from portico.errors import ConfigurationError
from portico_basics.files import Lost, read_text

_DEEPEST = 64
_SHOWN = 200
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PromptInvalid(Exception):
    """A prompt cannot be used: the reason, with the place in the file where it has one."""


def read_document(text: str, kind: str) -> Any:
    """Return the value of a document without its nulls; ``kind`` is ``yaml``, ``toml`` or ``json``.

    Raises `PromptInvalid`.
    """
    try:
        match kind:
            case "toml":
                value: Any = tomllib.loads(text)
            case "json":
                value = json.loads(text)
            case _:
                value = _read_yaml(text)
    except (ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())[:_SHOWN]
        raise PromptInvalid(f"this is not {kind.upper()}: {reason}") from error
    except RecursionError:
        raise PromptInvalid(f"it nests deeper than {_DEEPEST} levels") from None
    return _plain(value)


def _read_yaml(text: str) -> Any:
    """Read YAML without aliases: repeated without bound, they make a small file a large value."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            raise PromptInvalid(f"line {event.start_mark.line + 1}: aliases (*{event.anchor:.60}) are not read")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise PromptInvalid(f"line {event.start_mark.line + 1}: it nests deeper than {_DEEPEST} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - it is a safe one


def _plain(value: Any, depth: int = 0) -> Any:
    """Refuse what JSON does not hold: YAML and TOML have dates, infinite numbers and keys that are no text."""
    if depth > _DEEPEST:
        raise PromptInvalid(f"it nests deeper than {_DEEPEST} levels")
    if type(value) is list:
        return [_plain(inner, depth + 1) for inner in value]
    if type(value) is dict:
        for key in value:
            if type(key) is not str:
                raise PromptInvalid(f"the key {str(key)[:_SHOWN]} is a {type(key).__name__}: write it in quotes")
        return {key: _plain(inner, depth + 1) for key, inner in value.items() if inner is not None}
    if value is None or type(value) in (str, int, bool) or (type(value) is float and math.isfinite(value)):
        return value
    raise PromptInvalid(f"{str(value)[:_SHOWN]} is a {type(value).__name__}: write it as text, in quotes")


_KINDS = ["string", "integer", "number", "boolean", "array", "object"]
_MODES = ["auto", "required", "none"]
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_FLAG = {"type": "boolean"}
_NUMBER = {"type": "number"}
_NAME = {"pattern": "^[0-9A-Za-z_]+$"}
_JSON_SCHEMA = {"type": ["object", "string"]}


def _table(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


_SAMPLING = {
    "temperature": _NUMBER,
    "top_p": _NUMBER,
    "max_tokens": {"type": "integer", "minimum": 1},
    "seed": {"type": "integer"},
}
_INPUT = _table(
    {
        "description": _TEXT,
        "type": {"enum": _KINDS},
        "schema": _JSON_SCHEMA,
        "default": {},
        "required": _FLAG,
        "trusted": _FLAG,
    }
)
_VARIABLES = {
    "type": "array",
    "items": _table(
        {
            "name": {**_TEXT, **_NAME},
            "description": _TEXT,
            "default": {},
            "defaultValue": {},
            "is_required": _FLAG,
            "required": _FLAG,
            "json_schema": _JSON_SCHEMA,
            "allow_dangerously_set_content": _FLAG,
            "is_sensitive": _FLAG,
            "sample": {},
        },
        "name",
    ),
}
_CHOICE_OPTIONS = {  # the option of a turn that each turns off; arguments always retain their types
    "allow_parallel_calls": "parallel_tool_calls",
    "allow_concurrent_invocation": "parallel_tool_calls",
    "allow_strict_schema_adherence": "strict",
    "retain_argument_types": "",
}
_EXECUTION = _table(
    {
        **_SAMPLING,
        "service_id": _TEXT,
        "model_id": {"const": ""},  # a prompt chooses a configured chat service, not a model
        "stop_sequences": _TEXTS,
        "presence_penalty": _NUMBER,
        "frequency_penalty": _NUMBER,
        "results_per_prompt": {"const": 1},
        "number_of_responses": {"const": 1},
        "function_choice_behavior": _table(
            {"type": {"enum": _MODES}, "functions": _TEXTS, "options": _table(dict.fromkeys(_CHOICE_OPTIONS, _FLAG))},
            "type",
        ),
    }
)
_SCHEMA = _table(
    {
        **_SAMPLING,
        "name": {**_TEXT, **_NAME},
        "description": _TEXT,
        "language": _TEXT,
        "template": _TEXT,
        "inputs": {
            "type": "object",
            "propertyNames": _NAME,
            "additionalProperties": {"if": _TEXT, "then": True, "else": _INPUT},
        },
        "returns": {"if": _TEXT, "then": {"enum": _KINDS}, "else": {"type": "object"}},
        "effects": _FLAG,
        "tags": _TEXTS,
        "stop": _TEXTS,
        "chat": _TEXT,
        "functions": _TEXTS,
        "tool_choice": {"enum": _MODES},
        "parallel_tool_calls": _FLAG,
        "extras": {"type": "object"},
        # Semantic Kernel's.
        "schema": {"const": 1},
        "type": {"const": "completion"},
        "template_format": _TEXT,
        "allow_dangerously_set_content": _FLAG,
        "input_variables": _VARIABLES,
        "input": _table({"parameters": _VARIABLES}),
        "output_variable": _table({"name": _TEXT, "description": _TEXT, "json_schema": _JSON_SCHEMA}),
        "execution_settings": {"type": "object", "additionalProperties": _EXECUTION},
        "completion": _EXECUTION,
        "default_services": _TEXTS,
    }
)
"""JSON Schema of a settings file, without its nulls."""


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A prompt as it was read. ``options`` are those of a turn, ``place`` is its file."""

    name: str = ""
    description: str = ""
    language: str = ""
    template: str = ""
    inputs: Mapping[str, PromptInput] = field(default_factory=dict)
    trusted: frozenset[str] = frozenset()
    returns: Mapping[str, Any] | None = None
    effects: bool = False
    tags: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""


def read_settings(document: object) -> PromptFile:
    """Return what a document says; raises `PromptInvalid` for keys that are not known or do not fit."""
    given: Any = {} if document is None else document
    faults = _validate()(given)
    if faults:
        raise PromptInvalid("; ".join(faults[:3]))
    inputs = _inputs(given)
    trusted = {name for name, one in inputs.items() if one.get("trusted")}
    return PromptFile(
        name=given.get("name", ""),
        description=given.get("description", "").strip(),
        language=given.get("language") or given.get("template_format", ""),
        template=given.get("template", ""),
        inputs={name: _input(one) for name, one in inputs.items()},
        trusted=frozenset(inputs if given.get("allow_dangerously_set_content") else trusted),
        returns=_returns(given),
        effects=given.get("effects", False),
        tags=tuple(given.get("tags", ())),
        options=_execution_options(given) | _options(given, stop="stop"),
    )


@lru_cache(1)
def _validate() -> Callable[[Any], list[str]]:
    from portico_basics.jsonschema.validator import JsonschemaValidator

    return JsonschemaValidator().compile(_SCHEMA)


def _inputs(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the inputs in Portico's terms, by name."""
    inputs = {
        name: {"description": one} if isinstance(one, str) else one for name, one in given.get("inputs", {}).items()
    }
    for variable in given.get("input_variables") or given.get("input", {}).get("parameters", []):
        one = {
            "description": variable.get("description", ""),
            "schema": variable.get("json_schema"),
            "trusted": variable.get("allow_dangerously_set_content", False),
        }
        default = variable.get("default", variable.get("defaultValue"))
        if default is not None:
            one["default"] = default  # there, a default counts whatever is_required says
        elif "is_required" in variable or "required" in variable:
            one["required"] = variable.get("is_required", variable.get("required"))
        inputs[variable["name"]] = one
    return inputs


def _input(one: Mapping[str, Any]) -> PromptInput:
    schema = _json_schema(one.get("schema")) or {"type": one.get("type", "string")}
    required = one.get("required", "default" not in one)
    default = PromptInput.REQUIRED if required else one.get("default")
    return PromptInput(schema, one.get("description", "").strip(), default)


def _json_schema(value: Any) -> Any:
    """Return a JSON Schema, which may be written as JSON text."""
    if not isinstance(value, str) or not value:
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise PromptInvalid(f"the JSON Schema {value[:60]!r} is not JSON: {error}") from error


def _returns(given: Mapping[str, Any]) -> Mapping[str, Any] | None:
    returns: Any = given.get("returns")
    if isinstance(returns, str):
        return {"type": returns}
    if returns is None and "output_variable" in given:
        output = given["output_variable"]
        returns = dict(_json_schema(output.get("json_schema")) or {"type": "string"})
        if output.get("description"):
            returns["description"] = output["description"]
    return cast("Mapping[str, Any] | None", returns)


def _options(given: Mapping[str, Any], *, stop: str) -> dict[str, Any]:
    named = (*_SAMPLING, "chat", "functions", "tool_choice", "parallel_tool_calls", "extras")
    options = {key: given[key] for key in named if key in given}
    if given.get(stop):
        options["stop"] = tuple(given[stop])
    return options


def _execution_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of ``execution_settings``: those called default, or the only ones.

    Settings under the name of a service choose that chat service. The older ``completion`` holds them directly.
    """
    services = given.get("execution_settings") or {"default": given.get("completion", {})}
    if "default" not in services and len(services) > 1:
        raise PromptInvalid(f"execution_settings has {', '.join(map(repr, services))}, and none called 'default'")
    name = "default" if "default" in services else next(iter(services))
    settings = services[name]
    options = _options(settings, stop="stop_sequences")
    service = settings.get("service_id") or name
    if service != "default":
        options["chat"] = service
    choice = settings.get("function_choice_behavior")
    if choice is not None:
        options["tool_choice"] = choice["type"]
        options["functions"] = tuple(choice.get("functions", ())) or None
        options |= {_CHOICE_OPTIONS[name]: False for name, allowed in choice.get("options", {}).items() if not allowed}
        options.pop("", None)
    extras = {key: settings[key] for key in ("presence_penalty", "frequency_penalty") if settings.get(key)}
    if extras:
        options["extras"] = extras
    return {key: value for key, value in options.items() if value is not None}


OWN_LANGUAGE = "semantic-kernel"
MOST_PROMPTS = 2_000
MOST_BYTES = 1_000_000
"""Bytes of one file."""

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
_SETTINGS = ("prompt.yaml", "prompt.yml", "prompt.toml", "config.json")
_SINGLE = (".prompt.yaml", ".prompt.yml", ".prompt.toml")
_NOT_IN_A_NAME = re.compile(r"[^0-9A-Za-z_]+")


def read_prompts(directory: Path) -> tuple[list[PromptFile], list[Lost]]:
    """Return the prompts of a directory by their names, and those that are lost.

    Raises ``ConfigurationError`` when the directory cannot be read, or holds no prompt at all.
    """
    try:
        entries = sorted(each for each in directory.iterdir() if each.name[0] not in "._")
        found = [each for each in entries if each.is_dir() or (each.name.endswith(_SINGLE) and each.is_file())]
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
    lost: list[Lost] = []
    for entry in found:
        try:
            prompt = _read_folder(entry) if entry.is_dir() else _name_prompt(_settings(entry), entry, entry)
            if prompt.name in prompts:
                raise PromptInvalid(f"the name {prompt.name!r} is taken by {prompts[prompt.name].place}")
            prompts[prompt.name] = prompt
        except PromptInvalid as error:
            lost.append(Lost(entry.name, str(error)))
        except OSError as error:
            lost.append(Lost(entry.name, f"it cannot be read: {error.strerror or type(error).__name__}"))
    return list(prompts.values()), lost


def _read_folder(folder: Path) -> PromptFile:
    files = [each.name for each in folder.iterdir() if each.is_file()]
    template = _only(files, _TEMPLATES, "templates")
    settings_file = _only(files, _SETTINGS, "settings")
    prompt = PromptFile() if settings_file is None else _settings(folder / settings_file)
    if template is None:
        if settings_file is None:
            raise PromptInvalid(f"it holds no prompt: {', '.join(_TEMPLATES)} or one of {', '.join(_SETTINGS)}")
        return _name_prompt(prompt, folder, folder / settings_file)
    if prompt.template:
        raise PromptInvalid(f"{settings_file}: template: {template} is the template already: keep one")
    language = _TEMPLATES[template]
    if prompt.language and language not in (OWN_LANGUAGE, prompt.language):
        raise PromptInvalid(f"{settings_file}: language: {prompt.language!r} is not that of {template}")
    prompt = replace(prompt, template=_text(folder / template), language=prompt.language or language)
    return _name_prompt(prompt, folder, folder / template)


def _name_prompt(prompt: PromptFile, entry: Path, file: Path) -> PromptFile:
    """Return a prompt with its place and its name: that of the settings, of the file or of the folder."""
    if not prompt.template.strip():
        raise PromptInvalid("it has no template: write it under `template`, or in a file such as prompt.txt beside it")
    # An accent is its own letter in this form, and goes: Résumé is Resume.
    natural = normalize("NFKD", entry.name if file != entry else re.sub(r"\.prompt\.\w+$", "", entry.name))
    letters = "".join(letter for letter in natural if not combining(letter))
    name = prompt.name or _NOT_IN_A_NAME.sub("_", letters).strip("_")
    if not name:
        raise PromptInvalid("its name has no letters or digits; give it one with the key 'name'")
    place = file.relative_to(entry.parent).as_posix()
    return replace(prompt, place=place, name=name, language=prompt.language or OWN_LANGUAGE)


def _only(files: list[str], known: Iterable[str], noun: str) -> str | None:
    there = [name for name in known if name in files]
    if len(there) > 1:
        raise PromptInvalid(f"it holds two {noun}, {' and '.join(there)}: keep one")
    return there[0] if there else None


def _settings(path: Path) -> PromptFile:
    text = _text(path)
    try:
        return read_settings(read_document(text, path.suffix[1:].replace("yml", "yaml")))
    except PromptInvalid as error:
        raise PromptInvalid(f"{path.name}: {error}") from error


def _text(path: Path) -> str:
    try:
        return read_text(path, MOST_BYTES).replace("\r\n", "\n")
    except ValueError as error:
        raise PromptInvalid(f"{path.name}: {error}") from error

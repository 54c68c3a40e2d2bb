"""The prompts of a directory. A prompt that cannot be read is left out, with the reason."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from unicodedata import combining, normalize

from portico.errors import ConfigurationError
from portico_basics.lost import Lost
from portico_basics.prompts._settings import PromptInvalid, PromptSettings, read_document, read_settings

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
_SETTINGS = {"prompt.yaml": "yaml", "prompt.yml": "yaml", "prompt.toml": "toml", "config.json": "json"}
_SINGLE = {".prompt.yaml": "yaml", ".prompt.yml": "yaml", ".prompt.toml": "toml"}
_NOT_IN_A_NAME = re.compile(r"[^0-9A-Za-z_]+")


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A prompt as it was read; ``place`` is its file."""

    place: str
    name: str
    template: str
    language: str
    settings: PromptSettings


def read_prompts(directory: Path) -> tuple[list[PromptFile], list[Lost]]:
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
    lost: list[Lost] = []
    for entry in found:
        try:
            prompt = _read_folder(entry) if entry.is_dir() else _read_single(entry)
            if prompt.name in prompts:
                raise PromptInvalid(f"the name {prompt.name!r} is taken by {prompts[prompt.name].place}")
            prompts[prompt.name] = prompt
        except PromptInvalid as error:
            lost.append(Lost(entry.name, str(error)))
        except OSError as error:
            lost.append(Lost(entry.name, f"it cannot be read: {error.strerror or type(error).__name__}"))
    return list(prompts.values()), lost


def _single(path: Path) -> str | None:
    """Return the ending of a file that holds a prompt and its settings."""
    return next((end for end in _SINGLE if path.name.endswith(end) and path.name != end), None)


def _read_single(path: Path) -> PromptFile:
    ending = _single(path)
    assert ending is not None  # noqa: S101 - only such files are looked for
    settings = _settings(path, _SINGLE[ending])
    return _prompt(path.name, path.name.removesuffix(ending), settings)


def _read_folder(folder: Path) -> PromptFile:
    files = sorted(each.name for each in folder.iterdir() if each.is_file())
    template = _only(files, _TEMPLATES, "templates")
    settings_file = _only(files, _SETTINGS, "settings")
    if template is None and settings_file is None:
        raise PromptInvalid(f"it holds no prompt: {', '.join(_TEMPLATES)} or one of {', '.join(_SETTINGS)}")
    settings = PromptSettings()
    if settings_file is not None:
        settings = _settings(folder / settings_file, _SETTINGS[settings_file])
    if template is None:
        return _prompt(f"{folder.name}/{settings_file}", folder.name, settings)
    if settings.template is not None:
        raise PromptInvalid(f"{settings_file}: template: {template} is the template already: keep one")
    language = _TEMPLATES[template]
    if settings.language not in (None, language):
        if language != OWN_LANGUAGE:
            raise PromptInvalid(f"{settings_file}: language: {settings.language!r} is not that of {template}")
        language = settings.language
    settings = replace(settings, template=_text(folder / template), language=language)
    return _prompt(f"{folder.name}/{template}", folder.name, settings)


def _prompt(place: str, natural: str, settings: PromptSettings) -> PromptFile:
    if settings.template is None or not settings.template.strip():
        raise PromptInvalid("it has no template: write it under `template`, or in a file such as prompt.txt beside it")
    # An accent is its own letter in this form, and goes: Résumé is Resume.
    letters = "".join(letter for letter in normalize("NFKD", natural) if not combining(letter))
    name = settings.name or _NOT_IN_A_NAME.sub("_", letters).strip("_")
    if not name:
        raise PromptInvalid("its name has no letters or digits; give it one with the key 'name'")
    return PromptFile(place, name, settings.template, settings.language or OWN_LANGUAGE, settings)


def _only(files: list[str], known: dict[str, str], noun: str) -> str | None:
    there = [name for name in known if name in files]
    if len(there) > 1:
        raise PromptInvalid(f"it holds two {noun}, {' and '.join(there)}: keep one")
    return there[0] if there else None


def _settings(path: Path, kind: str) -> PromptSettings:
    try:
        return read_settings(read_document(_text(path), kind))
    except PromptInvalid as error:
        raise PromptInvalid(f"{path.name}: {error}") from error


def _text(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise PromptInvalid(f"{path.name} is larger than {MOST_BYTES:,} bytes")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise PromptInvalid(f"{path.name} is not UTF-8: {error}") from error

"""Finding the prompts of a directory and reading their files; what is wrong with one loses that one."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from unicodedata import combining, normalize

from portico.errors import ConfigurationError, nearest
from portico_basics.prompts._documents import read_document
from portico_basics.prompts._prompt import PromptSettings
from portico_basics.prompts._settings import read_settings
from portico_basics.prompts._wrong import Wrong

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
    # An accent is a letter of its own in this form, and goes: Résumé is Resume.
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

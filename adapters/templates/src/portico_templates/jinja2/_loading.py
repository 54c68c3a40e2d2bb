"""The templates that others may include, import or extend."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from jinja2 import BaseLoader, Environment, TemplateNotFound
from jinja2.loaders import split_template_path

from portico.errors import ConfigurationError, LimitExceeded
from portico_templates.jinja2._errors import Refused


class Partials(BaseLoader):
    """Find partials in a mapping, then in a folder; nothing else of the host's files is ever opened."""

    def __init__(self, partials: Mapping[str, str], folder: Path | None, largest: int) -> None:
        self._partials = dict(partials)
        self._folder = folder
        self._largest = largest

    @property
    def listed(self) -> tuple[str, ...]:
        """The names that the mapping gives; those of a folder are its files."""
        return tuple(self._partials)

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        """Return the text of a partial; raises ``TemplateNotFound``."""
        source = self._partials.get(template)
        if source is None:
            source = self._read(template)
        if len(source) > self._largest:
            raise LimitExceeded(
                f"The partial {template!r} has more than {self._largest:,} characters; max_source sets how many "
                "it may have."
            )
        sources: dict[str, str] = environment.sources  # type: ignore[attr-defined]
        sources[template] = source
        return source, None, None

    def _read(self, template: str) -> str:
        if self._folder is None or "\0" in template:
            raise TemplateNotFound(template)
        path = self._folder.joinpath(*split_template_path(template))
        if not self._folder.is_dir():
            raise ConfigurationError(f"The folder of partials, {self._folder}, is not there.")
        try:
            # A link inside of the folder must not lead out of it.
            if not path.resolve().is_relative_to(self._folder.resolve()) or not path.is_file():
                raise TemplateNotFound(template)
            with path.open(encoding="utf-8") as file:
                return file.read(self._largest + 1)
        except TemplateNotFound:
            raise  # It is an OSError too.
        except UnicodeDecodeError as error:
            raise Refused(f"The partial {template!r} is not text in UTF-8.") from error
        except OSError as error:
            raise Refused(f"The partial {template!r} cannot be read: {error.strerror or error}.") from error

"""The settings of a SearXNG."""

from __future__ import annotations

from attrs import Attribute, field, frozen, validators

from portico.plugins import ValueForm


def _names(_: object, attribute: Attribute[tuple[str, ...]], value: tuple[str, ...]) -> None:
    if any(not name.strip() or "," in name for name in value):
        raise ValueError(f"{attribute.name} is a list of names, each without a comma")


@frozen
class SearxngSettings:
    """The settings of a source that uses `searxng`.

    >>> SearxngSettings(base_url="http://127.0.0.1:8888/").search_url
    'http://127.0.0.1:8888/search'
    """

    base_url: str = field(
        validator=ValueForm.service_address("https://host"),
        metadata={"doc": "Address of your SearXNG: `http://127.0.0.1:8888`. JSON must be on there."},
    )
    language: str | None = field(
        default=None,
        metadata={"doc": "Language of the results: `en`, `de-CH`, `all`, `auto`. Not set: the server's own setting."},
    )
    categories: tuple[str, ...] = field(
        default=(),
        validator=_names,
        metadata={"doc": "Categories to search, such as `general`, `it`, `science`. Not set: the server's."},
    )
    engines: tuple[str, ...] = field(
        default=(),
        validator=_names,
        metadata={"doc": "Engines to ask, such as `duckduckgo`. Those of `categories` are asked too. Not set: all."},
    )
    time_range: str | None = field(
        default=None,
        validator=validators.optional(ValueForm.one_of("day", "week", "month", "year")),
        metadata={"doc": "The age of results: `day`, `week`, `month` or `year`; not every engine knows it."},
    )
    safe_search: int | None = field(
        default=None,
        validator=validators.optional(validators.in_((0, 1, 2))),
        metadata={"doc": "How much is left out for children: 0 nothing, 1 some, 2 most. Not set: the server's."},
    )

    @property
    def search_url(self) -> str:
        """The address of the search itself."""
        return f"{self.base_url.rstrip('/').removesuffix('/search')}/search"

    @property
    def params(self) -> dict[str, str | int | None]:
        """The parameters of every request: language, safety, categories and engines."""
        return {
            "language": self.language,
            "safesearch": self.safe_search,
            "time_range": self.time_range,
            "categories": ",".join(self.categories) or None,
            "engines": ",".join(self.engines) or None,
        }

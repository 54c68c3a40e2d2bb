"""The settings of Tavily's search."""

from __future__ import annotations

from attrs import field, frozen, validators

from portico.plugins import Secret, ValueForm

FORMS = {
    "country": ValueForm("[a-z][a-z ]+", "an English name in small letters, as in 'germany'"),
    "time_range": ValueForm.one_of("day", "week", "month", "year"),
    "topic": ValueForm.one_of("general", "news", "finance"),
}
"""The values that Tavily understands, of settings and filters."""

SITE = ValueForm(r"\S+", "one site without blanks, as in 'example.org'")
CLAUSES = {"site": ("Equal", "AnyOf"), "exclude_domains": ("Equal", "AnyOf"), "date": ("Range",)}
"""The clauses of the filters that take others than equality."""
ALWAYS = ("search_depth", "include_answer", "include_raw_content")
"""The settings that are parameters of every request."""


@frozen
class TavilySettings:
    """The settings of a source that uses `tavily`.

    >>> TavilySettings(api_key=Secret("tvly-1"), topic="news").base_url
    'https://api.tavily.com'

    Raises ``ValueError`` for an empty key and for unknown values.
    """

    api_key: Secret = field(
        validator=ValueForm.service_key("https://app.tavily.com"), metadata={"doc": "The key, `tvly-…`. Needed."}
    )
    base_url: str = field(
        default="https://api.tavily.com",
        validator=ValueForm.service_address("https://host"),
        metadata={"doc": "Address of the service."},
    )
    topic: str = field(
        default="general",
        validator=FORMS["topic"],
        metadata={"doc": "What is searched: `general`, `news` (with dates) or `finance`."},
    )
    country: str | None = field(
        default=None,
        validator=validators.optional(FORMS["country"]),
        metadata={"doc": "A country whose pages come first, by its English name: `germany`; for `general` only."},
    )
    time_range: str | None = field(
        default=None,
        validator=validators.optional(FORMS["time_range"]),
        metadata={"doc": "The age of pages: `day`, `week`, `month` or `year`. Not set: any."},
    )
    search_depth: str = field(
        default="basic",
        validator=ValueForm.one_of("basic", "advanced", "fast", "ultra-fast"),
        metadata={"doc": "`basic`, `fast` and `ultra-fast` cost one credit, `advanced` two, with better passages."},
    )
    include_answer: bool = field(
        default=False, metadata={"doc": "Have Tavily's model write an answer too, into the results' `metadata`."}
    )
    include_raw_content: bool = field(
        default=False,
        metadata={"doc": "Have the whole text of each page, too; it is in the records, not in the results' texts."},
    )

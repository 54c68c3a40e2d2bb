"""The settings of Brave's search."""

from __future__ import annotations

from attrs import field, frozen, validators

from portico.plugins import Secret, ValueForm

FORMS = {
    "country": ValueForm("[A-Za-z]{2}|ALL", "two letters, as in 'DE', or 'ALL'"),
    "freshness": ValueForm(
        r"p[dwmy]|\d{4}-\d\d-\d\dto\d{4}-\d\d-\d\d",
        "'pd', 'pw', 'pm' or 'py' (past day to past year), or days as in '2026-01-01to2026-01-31'",
    ),
    "language": ValueForm("[a-z]{2,3}(-[a-z]{2,4})?", "a language's short name, as in 'de' or 'pt-br'"),
    "safe_search": ValueForm.one_of("off", "moderate", "strict"),
}
"""The values that Brave understands, of settings and filters."""


@frozen
class BraveSettings:
    """The settings of a source that uses `brave`.

    >>> BraveSettings(api_key=Secret("BSA-1"), country="DE").base_url
    'https://api.search.brave.com/res/v1'

    Raises ``ValueError`` for an empty key and for unknown values.
    """

    api_key: Secret = field(
        # Brave's own answer to an empty key does not name the key.
        validator=ValueForm.service_key("https://api-dashboard.search.brave.com"),
        metadata={"doc": "The key (subscription token) of a plan for search. Needed."},
    )
    base_url: str = field(
        default="https://api.search.brave.com/res/v1",
        validator=ValueForm.service_address("https://host/res/v1"),
        metadata={"doc": "Address of the service, up to its version."},
    )
    country: str | None = field(
        default=None,
        validator=validators.optional(FORMS["country"]),
        metadata={"doc": "Where results come from, two letters: `DE`; `ALL` for the world. Not set: Brave's `US`."},
    )
    language: str | None = field(
        default=None,
        validator=validators.optional(FORMS["language"]),
        metadata={"doc": "The language of results: `de`. Not set: Brave's `en`."},
    )
    safe_search: str | None = field(
        default=None,
        validator=validators.optional(FORMS["safe_search"]),
        metadata={"doc": "What is kept back of pages for adults: `off`, `moderate`, `strict`. Not set: `moderate`."},
    )
    freshness: str | None = field(
        default=None,
        validator=validators.optional(FORMS["freshness"]),
        metadata={"doc": "The age of pages: `pd`, `pw`, `pm`, `py`, or days: `2026-01-01to2026-01-31`. Not set: any."},
    )
    extra_snippets: bool = field(
        default=False, metadata={"doc": "Ask for up to five more excerpts of each page; not every plan has them."}
    )

"""The settings of Google Custom Search."""

from __future__ import annotations

from typing import Any, Literal

from attrs import Attribute, field, fields, frozen, validators

from portico.plugins import Secret, ValueForm

SITE = ValueForm(r"\S+", "one site without blanks, as in 'example.org'")
_LANGUAGE = "[A-Za-z]{2}(-[A-Za-z]{2})?"
LANGUAGE = ValueForm(_LANGUAGE, "a language's short name, as in 'de' or 'zh-TW'")
_TEXT = ValueForm(r"(?s:.*\S.*)", "a text that is not empty")


def _option(parameter: str, form: ValueForm, doc: str) -> Any:
    """Return a setting that is sent as ``parameter``, unless the filter of that name says something else."""

    def check(settings: object, member: Any, value: object) -> None:
        if value is not None:
            form(settings, member, str(value))

    return field(default=None, validator=check, metadata={"doc": doc, "parameter": parameter, "form": form})


def _engine(_: object, attribute: Attribute[str], value: str) -> None:
    if not value or "/" in value or any(letter.isspace() for letter in value):
        raise ValueError(f"{attribute.name} is the engine's ID alone, such as 017576662512468239146:omuauf, no address")


@frozen
class GoogleSettings:
    """The settings of a source that uses `google`.

    >>> GoogleSettings(api_key=Secret("k"), search_engine_id="0123:abc").base_url
    'https://customsearch.googleapis.com/customsearch/v1'
    """

    api_key: Secret = field(
        validator=ValueForm.service_key(), metadata={"doc": "The API key, with the Custom Search API enabled."}
    )
    search_engine_id: str = field(
        validator=_engine,
        metadata={"doc": "The ID of your Programmable Search Engine (`cx`), which says what is searched."},
    )
    base_url: str = field(
        default="https://customsearch.googleapis.com/customsearch/v1",
        validator=ValueForm.service_address("https://host/customsearch/v1"),
        metadata={"doc": "Where the service is; `…/v1/siterestrict` is the one for engines of at most ten sites."},
    )
    safe_search: Literal["active", "off"] | None = field(
        default=None,
        validator=validators.optional(validators.in_(("active", "off"))),
        metadata={"doc": "Adult content (`safe`): `active` leaves it out; not set: as the engine has it."},
    )
    country: str | None = _option(
        "gl",
        ValueForm("[A-Za-z]{2}", "two letters, as in 'de'"),
        "Where the reader is; it moves results from there up.",
    )
    language: str | None = _option(
        "hl",
        ValueForm("[A-Za-z]{2,3}(-[A-Za-z]+)?", "a language's short name, as in 'de' or 'zh-TW'"),
        "The reader's language, such as `de`.",
    )
    language_restrict: str | None = _option(
        "lr", ValueForm(f"{_LANGUAGE}([|]{_LANGUAGE})*", "languages, as in 'de|fr'"), "The languages of the pages."
    )
    country_restrict: str | None = _option(
        "cr", ValueForm(r"[-().|A-Za-z]+", "countries, as in 'countryDE|countryAT'"), "The countries of the pages."
    )
    date_restrict: str | None = _option(
        "dateRestrict",
        ValueForm(r"[dwmy]\d{1,4}", "a number of days, weeks, months or years, as in 'd7' or 'm3'"),
        "How old pages may be: `d7`, `w2`, `m6`, `y1`.",
    )
    link_site: str | None = _option("linkSite", SITE, "An address that every page links to.")
    rights: str | None = _option(
        "rights",
        ValueForm(r"[-().|a-z_]+", "licences, as in 'cc_publicdomain|cc_attribute'"),
        "The licences of the pages.",
    )
    duplicate_filter: Literal[0, 1] | None = _option(
        "filter", ValueForm.one_of("0", "1"), "Whether Google leaves out pages that are much alike: `1`, or `0`."
    )
    exact_terms: str | None = _option("exactTerms", _TEXT, "A phrase that every page contains.")
    exclude_terms: str | None = _option("excludeTerms", _TEXT, "A word or a phrase that no page contains.")
    or_terms: str | None = _option("orTerms", _TEXT, "Words of which every page contains at least one.")
    file_type: str | None = _option(
        "fileType", ValueForm(r"\.?[A-Za-z0-9]+", "the end of a file's name, as in 'pdf'"), "The kind of the files."
    )


OPTIONS: dict[str, tuple[str, ValueForm]] = {
    each.metadata["parameter"]: (each.name, each.metadata["form"])
    for each in fields(GoogleSettings)
    if "parameter" in each.metadata
}
"""The settings that are parameters of a request: parameter, setting and form."""

"""The settings of a service that speaks the Bing v7 interface."""

from __future__ import annotations

from typing import Any, Literal

from attrs import field, fields, frozen

from portico.plugins import Secret, ValueForm

MARKET = ValueForm("(?i:[a-z]{2}-[a-z-]+)", "a language and a country, as in 'en-GB'")
LANGUAGE = ValueForm("(?i:[a-z]{2}(-[a-z-]+)?)", "a language's short name, as in 'de' or 'pt-br'")
_DAY = r"\d{4}-\d\d-\d\d"
_ANSWERS = ValueForm("-?[A-Za-z]+(,-?[A-Za-z]+)*", "names of answers with commas between them, as in 'Webpages,News'")


def _option(parameter: str, form: ValueForm, doc: str) -> Any:
    """Return a setting that is sent as ``parameter``, unless the filter of that name says something else."""

    def check(settings: object, member: Any, value: object) -> None:
        if value is not None:
            form(settings, member, str(value))

    return field(default=None, validator=check, metadata={"doc": doc, "parameter": parameter, "form": form})


@frozen
class BingSettings:
    """The settings of a source that uses `bing`.

    >>> BingSettings(api_key=Secret("k"), api_key_header="Authorization", api_key_scheme="Bearer").headers
    {'Authorization': Secret(literal)}
    """

    api_key: Secret = field(validator=ValueForm.service_key(), metadata={"doc": "The key of the service."})
    base_url: str = field(
        default="https://api.bing.microsoft.com/v7.0",
        validator=ValueForm.service_address("https://host/v7.0"),
        metadata={
            "doc": "Where the service is, up to what comes before `/search`. The default is Microsoft's own address, "
            "which was retired on 2025-08-11: set that of a service which speaks the same interface."
        },
    )
    api_key_header: str = field(
        default="Ocp-Apim-Subscription-Key",
        validator=ValueForm("[A-Za-z0-9-]+", "a header's name, as in 'Authorization'"),
        metadata={"doc": "The header that the key goes into."},
    )
    api_key_scheme: str = field(
        default="",
        validator=ValueForm("[A-Za-z0-9-]*", "one word, as in 'Bearer', or nothing"),
        metadata={"doc": "The word before the key in that header, such as `Bearer`; empty for none."},
    )
    market: str | None = _option(
        "mkt", MARKET, "The market of the results, such as `en-GB`; not set: the service guesses."
    )
    country: str | None = _option(
        "cc", ValueForm("(?i:[a-z]{2})", "two letters, as in 'DE'"), "The country of the results; not beside `market`."
    )
    language: str | None = _option("setLang", LANGUAGE, "The language of the service's own words; the market's.")
    safe_search: Literal["Off", "Moderate", "Strict"] | None = _option(
        "safeSearch",
        ValueForm.one_of("Off", "Moderate", "Strict", ignore_case=True),
        "Adult content; not set: the service's `Moderate`.",
    )
    freshness: str | None = _option(
        "freshness",
        ValueForm(
            rf"(?i:day|week|month)|{_DAY}(\.\.{_DAY})?",
            "'Day', 'Week' or 'Month', or days as in '2026-01-01..2026-01-31'",
        ),
        "When the service found a page: `Day`, `Week`, `Month`, or days for web pages.",
    )
    response_filter: str | None = _option(
        "responseFilter", _ANSWERS, "The answers to get, such as `Webpages,News`, or to leave out, such as `-Images`."
    )
    answer_count: int | None = _option(
        "answerCount", ValueForm(r"[1-9]\d{0,3}", "a number from 1 on"), "How many answers to get, best first."
    )
    promote: str | None = _option("promote", _ANSWERS, "Answers to get beside those of `answer_count`, such as `News`.")
    text_decorations: bool | None = _option(
        "textDecorations",
        ValueForm.one_of("true", "false", ignore_case=True),
        "Mark the words of the query, in the answer itself; texts of results have no marks.",
    )
    text_format: Literal["Raw", "HTML"] | None = _option(
        "textFormat", ValueForm.one_of("Raw", "HTML", ignore_case=True), "The form of these marks; `Raw`."
    )

    def __attrs_post_init__(self) -> None:
        if self.market is not None and self.country is not None:
            raise ValueError("market or country is set, and not both")

    @property
    def headers(self) -> dict[str, Secret]:
        """The header that the key goes into, as the service wants it."""
        scheme, key = self.api_key_scheme, self.api_key
        return {self.api_key_header: Secret(f"{scheme} {key.reveal()}", origin=key.origin) if scheme else key}


OPTIONS: dict[str, tuple[str, ValueForm]] = {
    each.metadata["parameter"]: (each.name, each.metadata["form"])
    for each in fields(BingSettings)
    if "parameter" in each.metadata
}
"""The settings that are parameters of a request: parameter, setting and form."""

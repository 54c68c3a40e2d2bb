"""The news of the Bing v7 interface."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from portico.web_search import FoundPage, WebAddress, plain_text, read_record

__all__ = ["BingArticle", "read_news"]


def _names(providers: Any) -> str:
    return ", ".join(plain_text(provider["name"]) for provider in providers)


@dataclass(frozen=True, slots=True)
class BingArticle:
    """An article of the news: what it says in short, who published it and when."""

    name: str
    url: WebAddress
    description: str = ""
    provider: Annotated[str, _names] = ""
    category: str | None = None
    date_published: datetime | None = None


def read_news(answer: Any) -> FoundPage[BingArticle]:
    """Return the articles of an answer."""
    found = [read_record(BingArticle, article) for article in answer["value"]]
    return FoundPage(found, answer.get("totalEstimatedMatches"), {"queryContext": answer.get("queryContext", {})})

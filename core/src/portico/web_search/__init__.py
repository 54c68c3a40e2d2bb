"""Connectors of search services that answer over HTTP in JSON: all that their authors import."""

from __future__ import annotations

from portico.settings import SITE, ValueForm, one_of
from portico.web_search.connector import WebSearchConnector
from portico.web_search.pages import AskedPage, FoundPage, check_query, query_operator
from portico.web_search.records import Verbatim, WebAddress, read_record
from portico.web_search.snippets import moment, plain_text, web_address

__all__ = [
    "SITE",
    "AskedPage",
    "FoundPage",
    "ValueForm",
    "Verbatim",
    "WebAddress",
    "WebSearchConnector",
    "check_query",
    "moment",
    "one_of",
    "plain_text",
    "query_operator",
    "read_record",
    "web_address",
]

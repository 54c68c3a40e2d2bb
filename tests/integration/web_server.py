"""A server that answers as MediaWiki and as SearXNG do, over a small encyclopaedia; a process of its own.

`python web_server.py LOG` prints its port and ends when its standard input does, or after ten minutes. A first part
of the path makes it behave as servers sometimes do: `/slow`, `/limited`, `/lagged`, `/shut`, `/broken`, `/people`.
Each request is a line of JSON in the log.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import parse_qsl, quote, urlsplit

from small_wiki import Article, Hit, Wiki, without_markup

LASTS = 600.0
SLOW = 30.0
LONGEST_QUERY = 300
ENGINE_PAGE = 5
MOODS = frozenset({"slow", "limited", "lagged", "shut", "broken", "people"})
FOR_PEOPLE = b"<!doctype html><html><head><title>A wiki</title></head><body><h1>Welcome</h1></body></html>"

Params = dict[str, str]


class ApiError(Exception):
    """What MediaWiki says of a mistake, with the status of success."""

    def __init__(self, code: str, info: str) -> None:
        super().__init__(info)
        self.code = code
        self.info = info


class MediaWiki:
    """The part of the Action API that a search needs: `action=query` with `generator=search` or `list=search`."""

    def __init__(self, wiki: Wiki, address: str) -> None:
        self._wiki = wiki
        self._address = address

    def answer(self, params: Params) -> dict[str, Any]:
        """Return the answer to a request; ``ApiError`` for a mistake in it."""
        if params.get("action") != "query":
            raise ApiError("unknown_action", f'Unrecognized value for parameter "action": {params.get("action")}.')
        if params.get("formatversion") != "2":
            raise ApiError("badvalue", 'Unrecognized value for parameter "formatversion".')
        generator = params.get("generator") == "search"
        if not generator and params.get("list") != "search":
            return {"batchcomplete": True}
        prefix = "gsr" if generator else "sr"
        query, offset, limit, namespaces = self._asked(params, prefix)
        hits = self._wiki.search(query, namespaces)
        answer: dict[str, Any] = {"batchcomplete": True}
        if offset + limit < len(hits):
            answer["continue"] = {f"{prefix}offset": offset + limit, "continue": f"{prefix}offset||"}
        part = list(enumerate(hits[offset : offset + limit], offset + 1))
        found: dict[str, Any] = {"searchinfo": self._about(params.get(f"{prefix}info", ""), query, len(hits))}
        told = params.get(f"{prefix}prop", "").split("|")
        if generator:
            extracts = int(params["exlimit"].replace("max", "20")) if "extracts" in params.get("prop", "") else 0
            made = [self._page(hit, index, told, index - offset <= extracts) for index, hit in part]
            # As MediaWiki does: by the number of the page, the place in the ranking only as `index`.
            found["pages"] = sorted(made, key=lambda page: page["pageid"])
        else:
            found["search"] = [self._row(hit, told) for _, hit in part]
        return {**answer, "query": found} if hits or found["searchinfo"] else answer

    def _asked(self, params: Params, prefix: str) -> tuple[str, int, int, frozenset[int]]:
        query = params.get(f"{prefix}search", "").strip()
        if not query:
            raise ApiError("missingparam", f'The "{prefix}search" parameter must be set.')
        if len(query) > LONGEST_QUERY:
            raise ApiError(
                "cirrussearch-query-too-long",
                f"Search request is longer than the maximum allowed length. ({len(query)} > {LONGEST_QUERY})",
            )
        offset, limit = int(params.get(f"{prefix}offset", 0)), int(params.get(f"{prefix}limit", 10))
        if offset >= 10_000:
            raise ApiError("cirrussearch-offset-too-large", "Up to 10000 search results are supported.")
        if not 1 <= limit <= 500:
            raise ApiError("badinteger", f'The value "{limit}" for parameter "{prefix}limit" is not between 1 and 500.')
        return query, offset, limit, frozenset(map(int, params.get(f"{prefix}namespace", "0").split("|")))

    def _about(self, wanted: str, query: str, total: int) -> dict[str, Any]:
        about: dict[str, Any] = {"totalhits": total} if "totalhits" in wanted else {}
        suggestion = self._wiki.suggestion(query) if "suggestion" in wanted and total == 0 else None
        return about if suggestion is None else {**about, "suggestion": suggestion, "suggestionsnippet": suggestion}

    def _page(self, hit: Hit, index: int, told: list[str], with_extract: bool) -> dict[str, Any]:
        article = hit.article
        page = {**self._row(hit, told), "index": index, "contentmodel": "wikitext", "pagelanguage": "en"}
        if with_extract:
            page["extract"] = article.introduction
        address = f"{self._address}/wiki/{quote(article.path, safe='/:()')}"
        return {**page, "fullurl": address, "editurl": f"{address}?action=edit", "canonicalurl": address}

    def _row(self, hit: Hit, told: list[str]) -> dict[str, Any]:
        article = hit.article
        row: dict[str, Any] = {"pageid": article.number, "ns": article.namespace, "title": article.title}
        if "snippet" in told:
            row["snippet"] = hit.snippet
        if "timestamp" in told:
            row["timestamp"] = article.edited
        return row


class SearXNG:
    """The part of the search API that gives JSON: two engines over the wiki, whose pages are merged page by page."""

    def __init__(self, wiki: Wiki, address: str) -> None:
        self._wiki = wiki
        self._address = address

    def answer(self, params: Params) -> dict[str, Any]:
        """Return the answer to a request; ``ValueError`` for a mistake in it."""
        number = int(params.get("pageno", "1"))
        if params.get("time_range", "") not in ("", "day", "week", "month", "year"):
            raise ValueError(f"Invalid value {params['time_range']} for parameter time_range")
        hits = self._wiki.search(params["q"])
        by_date = sorted(hits, key=lambda hit: hit.article.edited, reverse=True)
        engines = {"small wiki": hits, "small wiki by date": by_date}
        chosen = params.get("engines", "").split(",") if params.get("engines") else list(engines)
        results: dict[str, dict[str, Any]] = {}
        for engine in chosen:
            first = (number - 1) * ENGINE_PAGE
            for place, hit in enumerate(engines.get(engine, [])[first : first + ENGINE_PAGE], 1):
                result = results.setdefault(hit.article.title, self._result(hit.article, hit.snippet, engine))
                result["engines"].append(engine)
                result["positions"].append(place)
                result["score"] += 1 / place
        suggestion = None if hits else self._wiki.suggestion(params["q"])
        return {
            "query": params["q"],
            "number_of_results": 0,
            "results": sorted(results.values(), key=lambda result: -result["score"]),
            "answers": [],
            "corrections": [] if suggestion is None else [suggestion],
            "infoboxes": [],
            "suggestions": [],
            "unresponsive_engines": [["far away", "timeout"]],
        }

    def _result(self, article: Article, snippet: str, engine: str) -> dict[str, Any]:
        return {
            "url": f"{self._address}/wiki/{quote(article.path, safe='/:()')}",
            "title": article.title,
            "content": without_markup(snippet),
            "publishedDate": article.edited.removesuffix("Z"),
            "engine": engine,
            "engines": [],
            "positions": [],
            "score": 0.0,
            "category": "general",
            "template": "default.html",
        }


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: Server

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        mood, path = _mood(address.path)
        params = dict(parse_qsl(address.query, keep_blank_values=True))
        self.server.write_down(path=address.path, params=params, agent=self.headers.get("user-agent"))
        status, headers, body = self._answer(mood, path, params)
        self.send_response(status)
        for name, value in {"Content-Type": "application/json; charset=utf-8", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _answer(self, mood: str, path: str, params: Params) -> tuple[int, dict[str, str], bytes]:
        html = {"Content-Type": "text/html; charset=utf-8"}
        match mood:
            case "slow":
                time.sleep(SLOW)
            case "limited":
                return 429, {**html, "Retry-After": "120"}, b"<h1>Too many requests</h1>"
            case "shut":
                return 403, html, b"<!doctype html><title>403 Forbidden</title><h1>Forbidden</h1>"
            case "broken":
                return 500, html, b"<h1>Internal Server Error</h1>"
            case "people":
                return 200, html, FOR_PEOPLE
            case "lagged":
                info = "Waiting for a database server: 7.2 seconds lagged."
                return 200, {"Retry-After": "5", **_coded("maxlag")}, _json({"error": {"code": "maxlag", "info": info}})
        if path == "/w/api.php":
            try:
                return 200, {}, _json(self.server.mediawiki.answer(params))
            except ApiError as error:
                said = {"error": {"code": error.code, "info": error.info, "docref": "See the documentation."}}
                return 200, _coded(error.code), _json(said)
        if path == "/search":
            try:
                return 200, {}, _json(self.server.searxng.answer(params))
            except ValueError as error:
                return 400, {}, _json({"error": str(error)})
        return 404, html, b"<h1>Not found</h1>"

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing; the log has it."""


class Server(ThreadingHTTPServer):
    """The server with what it answers from."""

    daemon_threads = True

    def __init__(self, log: TextIO) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        wiki, address = Wiki(), f"http://127.0.0.1:{self.server_port}"
        self.mediawiki = MediaWiki(wiki, address)
        self.searxng = SearXNG(wiki, address)
        self._log = log
        self._lock = threading.Lock()

    def write_down(self, **facts: Any) -> None:
        with self._lock:
            self._log.write(f"{json.dumps(facts)}\n")
            self._log.flush()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away."""


def _mood(path: str) -> tuple[str, str]:
    first, _, rest = path.removeprefix("/").partition("/")
    return (first, f"/{rest}") if first in MOODS else ("", path)


def _coded(code: str) -> dict[str, str]:
    return {"MediaWiki-API-Error": code}


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def main() -> None:
    with Path(sys.argv[1]).open("a", encoding="utf-8") as log, Server(log) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        print(server.server_port, flush=True)
        ended = threading.Event()
        # Whoever started this holds the other end: when that is gone, so is this.
        threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
        ended.wait(LASTS)
        server.shutdown()


if __name__ == "__main__":
    main()

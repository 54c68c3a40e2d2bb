"""The pages: what the runs and conversations are, as HTML, and the forms that begin, decide and continue them."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from portico.errors import PlanInvalid, PorticoError
from portico.plans import Finding
from portico_cli.runs import parse_time
from portico_cli.show.layout import count_words
from portico_serve._api.routes import about, error_response
from portico_serve._inputs import InputInvalid, NotFound
from portico_serve._pages.showing import duration, error_page, money, render, seconds_between
from portico_serve._runs.graphs import finding_to_json

if TYPE_CHECKING:
    from portico_serve._desk import Desk

_A_PAGE = 50
_RECENT = 5
_MOST_FIELDS = 2_000

Form = Mapping[str, Sequence[str]]


def routes(desk: Desk) -> list[BaseRoute]:
    """Return the routes of the pages, without security: that is around them."""
    pages = _Pages(desk)
    table: tuple[tuple[str, str, Callable[[Request], Awaitable[Response]]], ...] = (
        ("GET", "/", partial(pages.ask, planning=False)),
        ("POST", "/", partial(pages.begin, planning=False)),
        ("GET", "/plan", partial(pages.ask, planning=True)),
        ("POST", "/plan", partial(pages.begin, planning=True)),
        ("GET", "/runs", pages.runs),
        ("GET", "/runs/{run:path}/steps/{id:path}", pages.step),
        ("GET", "/runs/{run:path}/row", pages.row),
        ("GET", "/runs/{run:path}/trace", pages.trace),
        ("GET", "/runs/{run:path}/passages/{number:int}", pages.passage),
        ("GET", "/runs/{run:path}", pages.run),
        ("POST", "/runs/{run:path}/approve", pages.approve),
        ("POST", "/runs/{run:path}/refuse", pages.refuse),
        ("POST", "/runs/{run:path}/resume", pages.resume),
        ("POST", "/runs/{run:path}/cancel", pages.cancel),
        ("POST", "/runs/{run:path}/replay", pages.replay),
        ("GET", "/chat", pages.chats),
        ("POST", "/chat", pages.new_chat),
        ("GET", "/chat/{chat}", pages.chat),
        ("POST", "/chat/{chat}", pages.say),
        ("GET", "/chat/{chat}/passages/{message:int}/{number:int}", pages.chat_passage),
        ("GET", "/plugins", pages.plugins),
        ("GET", "/plugins/health", pages.health),
    )
    return [Route(path, _showing(endpoint), methods=[method]) for method, path, endpoint in table]


def _showing(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that shows what it raises: beside the form where htmx asked, else as a page."""

    async def show(request: Request) -> Response:
        try:
            return await endpoint(request)
        except PorticoError as error:
            status = error_response(error).status_code
            found = error.findings if isinstance(error, PlanInvalid) else ()
            findings = [finding_to_json(each) for each in found if isinstance(each, Finding)]
            if _is_partial(request):
                return HTMLResponse(render("notice.html", error=str(error), findings=findings), status)
            return HTMLResponse(error_page(status, str(error), findings), status)

    return show


class _Pages:
    """The endpoints: each asks the runs or the conversations, and answers with a page or a part of one."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._runs, self._chats = desk.runs, desk.chats

    # Ask and plan.

    async def ask(self, request: Request, *, planning: bool) -> Response:
        listed = await self._runs.listing(limit=_RECENT)
        place = "/plan" if planning else "/"
        again = request.query_params.get("again")
        goal = (await self._runs.describe(again))["goal"] if again else ""
        return _page("ask.html", place, planning=planning, about=about(self._desk), recent=listed["runs"], goal=goal)

    async def begin(self, request: Request, *, planning: bool) -> Response:
        form = await _form(request)
        goal = _one(form, "goal").strip()
        if not goal:
            raise InputInvalid("There is no goal." if planning else "There is no question.")
        run = await self._runs.start(
            goal,
            sources=form.get("source", ()) if "chosen" in form else None,
            planner=_one(form, "planner") or None,
            input=_value_in_json(form, "input"),
            approve=_one(form, "approve") or "effects",
        )
        return _lead_to(request, f"/runs/{quote(run, safe='')}")

    # Runs.

    async def runs(self, request: Request) -> Response:
        given = request.query_params
        query, state, before = given.get("query", "")[:1_000], given.get("state", ""), given.get("before")
        listed = await self._runs.listing(query=query, state=state, limit=_A_PAGE, before=before)
        values = {"runs": listed["runs"], "query": query, "state": state, "more": None}
        if listed["more"]:
            after = {"query": query, "state": state, "before": listed["next"]}
            values["more"] = f"/runs?{urlencode({name: each for name, each in after.items() if each})}"
        if not _is_partial(request):
            return _page("runs.html", "/runs", **values)
        return _page("run_list.html" if before is None else "run_rows.html", **values)

    async def row(self, request: Request) -> Response:
        found = await self._runs.describe(_run(request))
        states = [each["state"] for each in found["steps"].values()]
        steps = {"steps_done": sum(each in ("done", "skipped") for each in states), "steps_planned": len(states)}
        return _page("run_row.html", run=found | steps)

    async def run(self, request: Request) -> Response:
        found = await self._runs.describe(_run(request))
        proposals = {each["number"]: each for each in found["proposals"]}
        failed = [id for id, each in found["steps"].items() if each["state"] == "failed"]
        nodes = (found["graph"] or {}).get("nodes", ())
        return _page(
            "run.html",
            "/runs",
            run=found,
            effects=any(each["effects"] for each in nodes),
            failed_steps=failed if found["state"] == "failed" else (),
            earlier=lambda number: _earlier(proposals, number),
            passage_address=f"/runs/{quote(found['run'], safe='')}/passages/{{}}".format,
            footer=_footer(found),
        )

    async def step(self, request: Request) -> Response:
        run = _run(request)
        found = await self._runs.step(run, request.path_params["id"])
        took = seconds_between(found["started_at"], found["ended_at"])
        return _page("step.html", run=run, step=found, took=took)

    async def passage(self, request: Request) -> Response:
        found = await self._runs.passage(_run(request), request.path_params["number"])
        return _passage(request, found)

    async def trace(self, request: Request) -> Response:
        run = _run(request)
        found = await self._runs.trace(run)
        spans, whole = _waterfall(found["spans"])
        return _page("trace.html", "/runs", run=run, spans=spans, whole=whole, source=found.get("from"))

    async def approve(self, request: Request) -> Response:
        form, run = await _form(request), _run(request)
        step, plan = _one(form, "step") or None, _value_in_json(form, "plan")
        await self._runs.approve(run, step=step, plan=plan, proposal=_proposal(form))
        return _done(request, run)

    async def refuse(self, request: Request) -> Response:
        form, run = await _form(request), _run(request)
        reason = _one(form, "reason").strip()
        if not reason:
            raise InputInvalid("Say what should be different: the planner reads it.")
        await self._runs.refuse(run, reason, proposal=_proposal(form))
        return _done(request, run)

    async def resume(self, request: Request) -> Response:
        form, run = await _form(request), _run(request)
        results: dict[str, Any] = {}
        if step := _one(form, "step"):
            results[step] = _json_or_words(_one(form, "value"))
        await self._runs.resume(run, retry=form.get("retry", ()), results=results)
        return _done(request, run)

    async def cancel(self, request: Request) -> Response:
        run = _run(request)
        await self._runs.cancel(run)
        return _done(request, run)

    async def replay(self, request: Request) -> Response:
        run = await self._runs.replay(_run(request))
        return _lead_to(request, f"/runs/{quote(run, safe='')}")

    # Conversations.

    async def chats(self, request: Request) -> Response:
        return _page("chat.html", "/chat", chat=None, chats=await self._chats.listing())

    async def new_chat(self, request: Request) -> Response:
        return _lead_to(request, f"/chat/{self._chats.create()}")

    async def chat(self, request: Request) -> Response:
        found = self._chats.describe(_chat(request))

        def address_in(message: int) -> Callable[[int], str]:
            return f"/chat/{found['chat']}/passages/{message}/{{}}".format

        return _page("chat.html", "/chat", chat=found, chats=await self._chats.listing(), address_in=address_in)

    async def say(self, request: Request) -> Response:
        form, chat = await _form(request), _chat(request)
        self._chats.send(chat, _one(form, "text"))
        return _lead_to(request, f"/chat/{chat}")

    async def chat_passage(self, request: Request) -> Response:
        messages = self._chats.describe(_chat(request))["messages"]
        at, number = request.path_params["message"], request.path_params["number"]
        cited = messages[at].get("citations", ()) if at < len(messages) else ()
        found = next((each for each in cited if each["number"] == number), None)
        if found is None:
            raise NotFound(f"The message has no citation {number}.")
        return _passage(request, {**found, "text": found["quote"]})

    # Plugins.

    async def plugins(self, request: Request) -> Response:
        from portico_cli.commands.plugins import packages_to_json

        return _page("plugins.html", "/plugins", **packages_to_json(self._desk.application))

    async def health(self, request: Request) -> Response:
        from portico_cli.commands.doctor import examine, findings_to_json

        found = await examine(self._desk.application.configuration.path, lambda words: None)
        return _page("health.html", **findings_to_json(found))


def _page(template: str, place: str = "", **values: Any) -> Response:
    return HTMLResponse(render(template, place=place, **values))


def _passage(request: Request, found: Mapping[str, Any]) -> Response:
    text, words = found["text"], found["quote"]
    before, quoted, after = text.partition(words) if words and words != text else (text, "", "")
    values = {"before": before, "quote": quoted, "after": after, "passage": found}
    return _page("passage.html", "/runs", partial=_is_partial(request), **values)


def _is_partial(request: Request) -> bool:
    return request.headers.get("hx-request") == "true"


def _lead_to(request: Request, address: str) -> Response:
    if _is_partial(request):
        return Response(headers={"HX-Redirect": address})
    return RedirectResponse(address, 303)


def _done(request: Request, run: str) -> Response:
    """Answer that a decision is taken: the page has what follows from its event stream."""
    return HTMLResponse("") if _is_partial(request) else RedirectResponse(f"/runs/{quote(run, safe='')}", 303)


async def _form(request: Request) -> Form:
    content = (await request.body()).decode("utf-8", "replace")
    try:
        return parse_qs(content, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise InputInvalid(f"A form has at most {_MOST_FIELDS} fields.") from error


def _one(form: Form, name: str) -> str:
    return form.get(name, ("",))[0]


def _proposal(form: Form) -> int | None:
    """Return the number of the proposal that a form is about."""
    text = _one(form, "proposal")
    if text and not re.fullmatch(r"[0-9]{1,6}", text):
        raise InputInvalid("The proposal is a number.")
    return int(text) if text else None


def _value_in_json(form: Form, name: str) -> Any:
    text = _one(form, name)
    try:
        return json.loads(text) if text.strip() else None
    except (ValueError, RecursionError) as error:
        raise InputInvalid(f"The {name} is not JSON: {error}.") from error


def _json_or_words(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _run(request: Request) -> str:
    return str(request.path_params["run"])


def _chat(request: Request) -> str:
    return str(request.path_params["chat"])


def _earlier(proposals: Mapping[int, Mapping[str, Any]], number: int) -> Mapping[str, Any] | None:
    """Return the last proposal before one that is a plan."""
    return next((proposals[each] for each in range(number - 1, 0, -1) if proposals[each]["text"]), None)


def _footer(found: Mapping[str, Any]) -> str:
    """Return who answered, from what, how long it took and what it cost."""
    words = f"Answered by {', '.join(found['services']) or found['planner']}"
    if found["citations"]:
        documents = {(each["link"] or "").partition("#")[0] or each["name"] for each in found["citations"]}
        passages = len({each["number"] for each in found["citations"]})
        words += f" from {count_words(passages, 'passage')} in {count_words(len(documents), 'document')}"
    if found["steps"]:
        words += f", {count_words(len(found['steps']), 'step')}"
    if found["seconds"] is not None:
        words += f", in {duration(found['seconds'])}"
    if found["cost"] is not None:
        words += f", for {money(found['cost'])}"
    return f"{words}."


def _waterfall(spans: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], float]:
    """Return the spans as a waterfall draws them, each below its parent, and the seconds of the whole."""
    times = [parse_time(each[end]) for each in spans for end in ("start", "end") if each[end]]
    if not times:
        return [], 0.0
    first, last = min(times), max(times)
    whole = (last - first).total_seconds()
    known = {each["id"] for each in spans}
    below: dict[str | None, list[Mapping[str, Any]]] = {}
    for each in spans:
        below.setdefault(each["parent"] if each["parent"] in known else None, []).append(each)
    made: list[dict[str, Any]] = []
    waiting = [(each, 0) for each in reversed(below.get(None, []))]
    while waiting:
        span, depth = waiting.pop()
        made.append({**span, "depth": depth, **_bar(span, first, last, whole)})
        waiting += [(each, depth + 1) for each in reversed(below.get(span["id"], []))]
    return made, whole


def _bar(span: Mapping[str, Any], first: datetime, last: datetime, whole: float) -> dict[str, Any]:
    start = parse_time(span["start"]) if span["start"] else first
    end = parse_time(span["end"]) if span["end"] else last
    scale = 1000 / whole if whole else 0
    width = max((end - start).total_seconds() * scale, 4)
    x = min((start - first).total_seconds() * scale, 1000 - width)
    return {
        "x": round(max(x, 0), 1),
        "width": round(min(width, 1000), 1),
        "seconds": seconds_between(span["start"], span["end"]),
    }

"""The document of the API: it has every route, and what the server answers fits it."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
from starlette.routing import Route
from tests.support.desks import plan, step
from tests.support.guarded import Served

from portico_serve._api import document, routes as api
from portico_serve._openai import completions

SHOUT = {"plans": [plan(step("s1", "tools-shout", text="hey"), result="s1")]}


def test_every_route_is_in_the_document_and_nothing_else(served: Served) -> None:
    routes = [route for each in (api, completions, document) for route in each.routes(served.desk)]
    there = {
        (method.lower(), re.sub(r":\w+\}", "}", route.path))
        for route in routes
        if isinstance(route, Route)
        for method in route.methods or ()
        if method != "HEAD"
    }
    paths = document.openapi("http://127.0.0.1:1")["paths"]

    assert {(method, path) for path, item in paths.items() for method in item if method != "parameters"} == there
    ids = [each["operationId"] for item in paths.values() for key, each in item.items() if key != "parameters"]
    assert len(ids) == len(set(ids))


async def test_answers_fit_the_document(served: Served) -> None:
    async with served.program() as http:
        document = (await http.get("/api/openapi.json")).json()
        assert document["servers"] == [{"url": served.url}]

        async def ask(method: str, path: str, body: Any = None, **names: object) -> Any:
            response = await http.request(method, path.format(**names), json=body)
            operation = document["paths"][path][method.lower()]
            answer = operation["responses"][str(response.status_code)]
            if "$ref" in answer:
                answer = document["components"]["responses"][answer["$ref"].rpartition("/")[2]]
            if body is not None and response.is_success:
                validate(body, operation["requestBody"]["content"]["application/json"]["schema"])
            if not response.content:
                assert "content" not in answer
                return None
            validate(response.json(), answer["content"]["application/json"]["schema"])
            return response.json()

        def validate(value: Any, schema: Any) -> None:
            jsonschema.Draft202012Validator({**schema, "components": document["components"]}).validate(value)

        run = (await ask("POST", "/api/runs", {"goal": json.dumps(SHOUT), "approve": "always"}))["run"]
        held = {"run": run}
        while (await ask("GET", "/api/runs/{run}", **held))["state"] != "held":
            pass
        await ask("POST", "/api/runs/{run}/approve", {"step": None, "plan": None}, **held)
        while (await ask("GET", "/api/runs/{run}", **held))["state"] != "done":
            pass
        await ask("GET", "/api/runs")
        await ask("GET", "/api/runs/{run}/steps/{id}", id="s1", **held)
        await ask("GET", "/api/runs/{run}/trace", **held)
        await ask("GET", "/api/runs/{run}/passages/{number}", number=1, **held)
        await ask("POST", "/api/runs/{run}/approve", {}, **held)
        await ask("POST", "/api/runs/{run}/replay", None, **held)
        await ask("POST", "/api/runs", {"goal": 7})
        await ask("POST", "/api/plans/check", {"plan": SHOUT["plans"][0], "run": None})
        await ask("GET", "/api/about")
        await ask("GET", "/api/plugins")
        chat = {"chat": (await ask("POST", "/api/chats"))["chat"]}
        await ask("POST", "/api/chats/{chat}/messages", {"text": "Hello"}, **chat)
        while (await ask("GET", "/api/chats/{chat}", **chat))["busy"]:
            pass
        await ask("GET", "/api/chats")
        await ask("DELETE", "/api/chats/{chat}", **chat)
        await ask("GET", "/v1/models")
        await ask("GET", "/v1/models/{model}", model="nothing")
        message = {"role": "user", "content": "Hello"}
        await ask("POST", "/v1/chat/completions", {"model": "portico-agent", "messages": [message]})

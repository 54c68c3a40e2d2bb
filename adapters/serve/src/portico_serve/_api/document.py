"""The OpenAPI document of /api and /v1: what a program may ask, and what it gets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from portico_serve._guard.refusals import ORIGIN
from portico_serve._json import JsonResponse

if TYPE_CHECKING:
    from portico_serve._desk import Desk

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "integer"}
_YES: Schema = {"type": "boolean"}
_ANY: Schema = {}
_OBJECT: Schema = {"type": "object", "additionalProperties": True}
_STATES = (
    "waiting",
    "running",
    "done",
    "failed",
    "infeasible",
    "held",
    "uncertain",
    "interrupted",
    "cancelled",
    "unreadable",
)
_STEP_STATES = ("waiting", "running", "retrying", "done", "failed", "skipped", "held", "uncertain")
_ERRORS = ("400", "401", "403", "404", "409", "413", "415", "422", "429", "500", "503")


def routes(desk: Desk) -> list[BaseRoute]:
    """Return the route of the document."""

    async def document(request: Request) -> Response:
        return JsonResponse(openapi(request.scope[ORIGIN]))

    return [Route("/api/openapi.json", document, methods=["GET"])]


def openapi(server: str) -> dict[str, Any]:
    """Return the document for a server at this address."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "portico serve",
            "version": version("portico-serve"),
            "summary": "Ask, agree to a plan before it runs, and watch it run.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": server}],
        "security": [{"token": []}],
        "tags": [{"name": name, "description": words} for name, words in _TAGS.items()],
        "paths": _paths(),
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The value of PORTICO_SERVE_TOKEN where the server was started.",
                }
            },
            "schemas": _SCHEMAS,
            "responses": {
                "Error": {"description": "What is wrong, and what to do.", "content": _json(_ref("Error"))},
                "OpenAIError": {"description": "An error of OpenAI's form.", "content": _json(_ref("OpenAIError"))},
            },
        },
    }


def _json(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _list(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def _described(words: str, schema: Schema, **more: Any) -> Schema:
    return {**schema, "description": words, **more}


def _object(*required: str, **properties: Schema) -> Schema:
    """Return an object that may have more members than are named."""
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _closed(*required: str, **properties: Schema) -> Schema:
    return {**_object(*required, **properties), "additionalProperties": False}


def _operation(
    id: str,
    summary: str,
    answer: Schema | None,
    *,
    status: int = 200,
    body: Schema | None = None,
    query: Mapping[str, Schema] | None = None,
    stream: str = "",
) -> dict[str, Any]:
    """Return an operation; ``stream`` says what its events are."""
    content: dict[str, Any] = {"description": stream or "Done."}
    if answer is not None:
        content["content"] = _json(answer)
    if stream:
        content["content"] = {**content.get("content", {}), "text/event-stream": {"schema": _TEXT}}
    errors = {code: {"$ref": "#/components/responses/Error"} for code in _ERRORS}
    made: dict[str, Any] = {"operationId": id, "summary": summary, "responses": {str(status): content, **errors}}
    if body is not None:
        made["requestBody"] = {"required": bool(body.get("required")), "content": _json(body)}
    if query:
        made["parameters"] = [{"name": name, "in": "query", "schema": schema} for name, schema in query.items()]
    return made


def _paths() -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for (method, path), operation in _OPERATIONS.items():
        names = re.findall(r"\{(\w+)\}", path)
        item = paths.setdefault(path, {})
        if names:
            item["parameters"] = [
                {"name": name, "in": "path", "required": True, "schema": _NUMBER if name == "number" else _TEXT}
                for name in names
            ]
        tag = "openai" if path.startswith("/v1") else path.split("/")[2]
        made = {**operation, "tags": [tag if tag in _TAGS else "server"]}
        if tag == "openai":
            wrong = {"$ref": "#/components/responses/OpenAIError"}
            made["responses"] = {code: wrong if code in _ERRORS else each for code, each in made["responses"].items()}
        item[method.lower()] = made
    return paths


_TAGS = {
    "runs": "Runs of the journal: begin them, decide about their plans, watch them.",
    "plans": "Plans that are edited.",
    "chats": "Conversations with an agent that has the sources and functions.",
    "server": "The server itself.",
    "openai": "The endpoints that clients of OpenAI's API know.",
}
_RUN = _closed("run", run=_TEXT)
_CHAT = _closed("chat", chat=_TEXT)
_APPROVE: Schema = {
    "type": "string",
    "enum": ["effects", "always"],
    "description": "Which plans wait for a person: those that may have effects (the default), or all.",
}
_PROPOSAL = _described("Only if this is still the newest proposal.", _NUMBER)

_OPERATIONS: Mapping[tuple[str, str], dict[str, Any]] = {
    ("GET", "/api/about"): _operation("about", "Tell what this server has.", _ref("About")),
    ("GET", "/api/plugins"): _operation("list-plugins", "List installed packages, and what is wrong.", _OBJECT),
    ("GET", "/api/openapi.json"): _operation("openapi", "Return this document.", _OBJECT),
    ("POST", "/api/plans/check"): _operation(
        "check-plan",
        "Check a plan that is being edited, and draw it. Nothing runs.",
        _object("findings", findings=_list(_ref("Finding")), text=_maybe(_TEXT), graph=_maybe(_ref("Graph"))),
        body=_closed("plan", plan=_ANY, run=_described("The run whose plan it is.", _maybe(_TEXT))),
    ),
    ("POST", "/api/runs"): _operation(
        "start-run",
        "Begin a run of a goal. It continues when this has answered.",
        _RUN,
        status=201,
        body=_closed(
            "goal",
            goal=_described("A question or a task in words.", _TEXT, maxLength=65_536),
            sources=_described("Search only these sources; all by default.", _maybe(_list(_TEXT))),
            planner=_described("The planner to use.", _maybe(_TEXT)),
            input=_described("Any JSON; plans refer to it as the step `input`.", _ANY),
            approve=_APPROVE,
        ),
    ),
    ("GET", "/api/runs"): _operation(
        "list-runs",
        "List runs, the newest first.",
        _object("runs", "more", runs=_list(_ref("RunRow")), more=_YES),
        query={
            "query": _described("Only runs with this in their goal or name.", _TEXT),
            "state": _described("Only runs in this state.", {"type": "string", "enum": ["", *_STATES]}),
            "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
            "before": _described("Only runs after this one in the list.", _TEXT),
        },
    ),
    ("GET", "/api/runs/{run}"): _operation("describe-run", "Describe a run.", _ref("Run")),
    ("GET", "/api/runs/{run}/events"): _operation(
        "watch-run",
        "Watch a run.",
        None,
        stream="Events: `snapshot` has the whole description, `steps` the states that changed, `text` a piece of the "
        "answer. The first is a snapshot.",
    ),
    ("GET", "/api/runs/{run}/steps/{id}"): _operation(
        "describe-step", "Return the arguments and the result of a step.", _ref("Step")
    ),
    ("GET", "/api/runs/{run}/passages/{number}"): _operation(
        "describe-passage", "Return the passage behind a citation of the answer.", _ref("Passage")
    ),
    ("GET", "/api/runs/{run}/trace"): _operation(
        "trace-run", "Return what happened when, as spans.", _object("spans", spans=_list(_ref("Span")))
    ),
    ("POST", "/api/runs/{run}/approve"): _operation(
        "approve-run",
        "Agree to the plan or the step that waits, or to an edited plan in its place.",
        _RUN,
        status=202,
        body=_closed(
            step=_described("The step that waits, if it is one.", _maybe(_TEXT)),
            plan=_described("An edited plan that runs instead.", _ANY),
            proposal=_maybe(_PROPOSAL),
        ),
    ),
    ("POST", "/api/runs/{run}/refuse"): _operation(
        "refuse-run",
        "Refuse the plan that waits: its planner proposes another, with this reason.",
        _RUN,
        status=202,
        body=_closed("reason", reason=_TEXT, proposal=_maybe(_PROPOSAL)),
    ),
    ("POST", "/api/runs/{run}/resume"): _operation(
        "resume-run",
        "Continue a run.",
        _RUN,
        status=202,
        body=_closed(
            retry=_described("Steps to try again.", _maybe(_list(_TEXT))),
            results=_described("Results of steps that may have happened, by step.", _maybe(_OBJECT)),
        ),
    ),
    ("POST", "/api/runs/{run}/cancel"): _operation("cancel-run", "Stop a run.", _RUN, status=202),
    ("POST", "/api/runs/{run}/replay"): _operation(
        "replay-run", "Run the steps of a run that has its answer again, as a new run.", _RUN, status=201
    ),
    ("POST", "/api/chats"): _operation("create-chat", "Begin a conversation.", _CHAT, status=201),
    ("GET", "/api/chats"): _operation(
        "list-chats", "List conversations, the newest first.", _object("chats", chats=_list(_ref("ChatRow")))
    ),
    ("GET", "/api/chats/{chat}"): _operation("describe-chat", "Return a conversation.", _ref("Chat")),
    ("DELETE", "/api/chats/{chat}"): _operation("delete-chat", "Delete a conversation.", None, status=204),
    ("POST", "/api/chats/{chat}/messages"): _operation(
        "send-message",
        "Say something. The answer comes as events.",
        _CHAT,
        status=202,
        body=_closed("text", text=_described("A message.", _TEXT, maxLength=65_536)),
    ),
    ("POST", "/api/chats/{chat}/answers"): _operation(
        "answer-question",
        "Answer the open question of the agent: whether a function with effects may be called.",
        _CHAT,
        status=202,
        body=_closed("question", "answer", question=_TEXT, answer={"type": "string", "enum": ["yes", "no", "always"]}),
    ),
    ("POST", "/api/chats/{chat}/stop"): _operation("stop-chat", "Stop the answer.", _CHAT, status=202),
    ("GET", "/api/chats/{chat}/events"): _operation(
        "watch-chat",
        "Watch a conversation.",
        None,
        stream="Events: `snapshot`, `text`, `tool`, `question`, `message`, `error`. The first is a snapshot.",
    ),
    ("GET", "/v1/models"): _operation(
        "list-models", "List the models: runs, and the agent.", _object("data", data=_list(_ref("Model")))
    ),
    ("GET", "/v1/models/{model}"): _operation("describe-model", "Describe a model.", _ref("Model")),
    ("POST", "/v1/chat/completions"): _operation(
        "create-chat-completion",
        "Answer a conversation: by a run (portico), or by a turn of the agent (portico-agent).",
        _ref("Completion"),
        stream="The answer. With `stream`, chunks as server-sent events, and `[DONE]` after them.",
        body=_object(
            "model",
            "messages",
            model={"type": "string", "enum": ["portico", "portico-agent"]},
            messages={**_list(_ref("Message")), "minItems": 1},
            stream=_described("Whether the answer comes in pieces.", _YES),
            stream_options=_closed(include_usage=_YES),
        ),
    ),
}

_SCHEMAS: Mapping[str, Schema] = {
    "Error": _object(
        "error", error=_object("message", "kind", message=_TEXT, kind=_TEXT, findings=_list(_ref("Finding")))
    ),
    "OpenAIError": _object(
        "error", error=_object("message", "type", message=_TEXT, type=_TEXT, param=_maybe(_TEXT), code=_maybe(_TEXT))
    ),
    "About": _object(
        "version",
        "sources",
        version=_TEXT,
        sources=_list(_object("name", name=_TEXT, summary=_TEXT)),
        planners=_list(_TEXT),
        planner=_maybe(_TEXT),
        chat=_maybe(_object("name", name=_TEXT, language_model=_YES)),
        workers=_YES,
    ),
    "RunRow": _object(
        "run",
        "state",
        run=_TEXT,
        state={"type": "string", "enum": list(_STATES)},
        goal=_maybe(_TEXT),
        seconds=_maybe({"type": "number"}),
        cost=_maybe({"type": "number"}),
    ),
    "Run": _object(
        "run",
        "state",
        run=_TEXT,
        state={"type": "string", "enum": list(_STATES)},
        goal=_maybe(_TEXT),
        planner=_maybe(_TEXT),
        started_at=_maybe(_TEXT),
        updated_at=_maybe(_TEXT),
        seconds=_maybe({"type": "number"}),
        services=_list(_TEXT),
        cost=_described("US dollars, where the price is known.", _maybe({"type": "number"})),
        input=_ANY,
        reason=_described("Why there is no answer.", _maybe(_TEXT)),
        held=_described("What waits for a person.", _maybe(_object("step", step=_maybe(_TEXT), uncertain=_YES))),
        answer=_maybe(_TEXT),
        value=_ANY,
        citations=_list(_ref("Citation")),
        warnings=_list(_TEXT),
        plan=_described("The plan as JSON.", _ANY),
        text=_described("The plan as text.", _maybe(_TEXT)),
        graph=_maybe(_ref("Graph")),
        proposals=_list(_object("number", "state", number=_NUMBER, state=_TEXT, findings=_list(_ref("Finding")))),
        steps=_described(
            "The state of each step, by its id.",
            {"type": "object", "additionalProperties": _object("state", state={"enum": list(_STEP_STATES)})},
        ),
        resumable=_YES,
        here=_described("Whether this server carries it out.", _YES),
    ),
    "Citation": _object(
        "number", number=_NUMBER, name=_maybe(_TEXT), link=_maybe(_TEXT), quote=_described("The passage.", _TEXT)
    ),
    "Finding": _object(
        "severity",
        "message",
        severity={"type": "string", "enum": ["error", "warning"]},
        message=_TEXT,
        step=_maybe(_TEXT),
        place=_maybe(_TEXT),
        hint=_maybe(_TEXT),
        verdict=_maybe(_TEXT),
    ),
    "Graph": _object(
        "nodes",
        "edges",
        nodes=_list(_object("id", "level", id=_TEXT, title=_TEXT, function=_maybe(_TEXT), level=_NUMBER)),
        edges=_list(_list(_TEXT)),
    ),
    "Step": _object(
        "id",
        "state",
        id=_TEXT,
        function=_ANY,
        arguments=_ANY,
        result=_ANY,
        error=_maybe(_TEXT),
        started_at=_maybe(_TEXT),
        ended_at=_maybe(_TEXT),
        attempts=_NUMBER,
        state={"enum": list(_STEP_STATES)},
        cut=_described("Whether values were cut because they are large.", _YES),
    ),
    "Passage": _object(
        "number",
        "text",
        number=_NUMBER,
        name=_maybe(_TEXT),
        link=_maybe(_TEXT),
        text=_TEXT,
        quote=_maybe(_TEXT),
        line=_maybe(_NUMBER),
        page=_maybe(_NUMBER),
    ),
    "Span": _object(
        "id", "name", id=_TEXT, parent=_maybe(_TEXT), name=_TEXT, start=_ANY, end=_ANY, status=_TEXT, attributes=_OBJECT
    ),
    "ChatRow": _object("chat", chat=_TEXT, title=_TEXT, updated_at=_maybe(_TEXT)),
    "Chat": _object(
        "chat",
        "messages",
        chat=_TEXT,
        title=_TEXT,
        busy=_YES,
        messages=_list(_object("role", "text", role=_TEXT, text=_TEXT)),
        question=_maybe(_object("question", "function", question=_TEXT, function=_TEXT, arguments=_OBJECT)),
    ),
    "Model": _object("id", id=_TEXT, object=_TEXT, created=_NUMBER, owned_by=_TEXT),
    "Message": _object(
        "role", "content", role={"type": "string", "enum": ["system", "developer", "user", "assistant"]}, content=_TEXT
    ),
    "Completion": _object(
        "id",
        "choices",
        id=_TEXT,
        model=_TEXT,
        choices=_list(
            _object("message", message=_object("role", "content", role=_TEXT, content=_TEXT), finish_reason=_TEXT)
        ),
        usage=_object(prompt_tokens=_NUMBER, completion_tokens=_NUMBER, total_tokens=_NUMBER),
        run=_described("The run that gave the answer.", _TEXT),
    ),
}

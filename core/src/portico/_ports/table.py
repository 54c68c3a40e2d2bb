"""The ports: small asynchronous protocols, one in each file.

``PORTS`` is their table. It is data, so that listing plugins imports no port.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PortInfo:
    """A port for the host: its hook, its table in `portico.toml`, its major version.

    ``many`` is for tables with any number of named entries (``[search.docs]``); others choose one with ``use``
    (``[chat]``). A port that shares such a table has another ``key``: ``[functions]`` with ``select``. ``default`` is
    the registration without a configuration. A ``spare`` default is left out where it is not installed.
    """

    name: str
    noun: str
    version: int
    hook: str
    table: str
    many: bool = False
    default: str | None = None
    spare: bool = False
    key: str = "use"


PORTS: tuple[PortInfo, ...] = (
    PortInfo("ChatService", "chat service", 1, "portico_chat_services", "chat", default="extractive"),
    PortInfo("TextSearch", "text search", 1, "portico_text_searches", "search", many=True),
    PortInfo(
        "EmbeddingGenerator",
        "embedding generator",
        1,
        "portico_embedding_generators",
        "embeddings",
        default="wordllama",
    ),
    PortInfo("VectorStore", "vector store", 1, "portico_vector_stores", "vectors", default="faiss"),
    PortInfo("Planner", "planner", 1, "portico_planners", "planner", default="retrieval"),
    PortInfo("FunctionSource", "function plugin", 1, "portico_function_plugins", "functions", many=True),
    PortInfo("FunctionSelector", "function selector", 1, "portico_function_selectors", "functions", key="select"),
    PortInfo("TemplateLanguage", "template language", 1, "portico_template_languages", "templates", many=True),
    PortInfo("RunStore", "run store", 1, "portico_run_stores", "runs", default="sqlite", spare=True),
    PortInfo("PlanStore", "plan store", 1, "portico_plan_stores", "plans"),
    PortInfo("Runner", "runner", 1, "portico_runners", "runner"),
    PortInfo("TypeCodec", "type codec", 1, "portico_type_codecs", "types", many=True),
    PortInfo("SchemaValidator", "schema validator", 1, "portico_schema_validators", "schemas"),
    PortInfo("PageReader", "page reader", 1, "portico_page_readers", "pages", default="web-pages", spare=True),
    PortInfo("Observer", "observer", 1, "portico_observers", "observers", many=True),
    PortInfo("HttpClient", "HTTP client", 1, "portico_http_clients", "http", default="httpx", spare=True),
)

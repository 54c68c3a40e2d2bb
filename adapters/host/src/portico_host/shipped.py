"""The distributions of Portico's own, installed or not: names that no other package can have."""

from __future__ import annotations

__all__ = ["SHIPPED"]

SHIPPED = frozenset(
    (
        "portico",
        "portico-bing",
        "portico-brave",
        "portico-basics",
        "portico-core",
        "portico-dbos",
        "portico-documents",
        "portico-faiss",
        "portico-function-calling-planner",
        "portico-google",
        "portico-handlebars",
        "portico-handlebars-planner",
        "portico-host",
        "portico-httpx",
        "portico-jinja2",
        "portico-llamacpp",
        "portico-mediawiki",
        "portico-milvus",
        "portico-openai",
        "portico-openapi",
        "portico-postgres",
        "portico-searxng",
        "portico-sequential-planner",
        "portico-stepwise-planner",
        "portico-structured-planner",
        "portico-tavily",
        "portico-testkit",
        "portico-web-pages",
        "portico-wordllama",
    )
)
"""A test compares them with the workspace."""

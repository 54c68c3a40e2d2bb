"""The distributions of Portico's own, installed or not: names that no other package can have."""

from __future__ import annotations

__all__ = ["SHIPPED"]

SHIPPED = frozenset(
    (
        "portico",
        "portico-bing",
        "portico-brave",
        "portico-cached-embeddings",
        "portico-contextual",
        "portico-core",
        "portico-dbos",
        "portico-documents",
        "portico-extractive",
        "portico-faiss",
        "portico-function-calling-planner",
        "portico-fused",
        "portico-google",
        "portico-handlebars",
        "portico-handlebars-planner",
        "portico-host",
        "portico-httpx",
        "portico-jinja2",
        "portico-jsonschema",
        "portico-llamacpp",
        "portico-local-runner",
        "portico-mediawiki",
        "portico-milvus",
        "portico-openai",
        "portico-openapi",
        "portico-plan-folder",
        "portico-postgres",
        "portico-prompts",
        "portico-recorded-planner",
        "portico-retrieval-planner",
        "portico-searxng",
        "portico-sequential-planner",
        "portico-sqlite",
        "portico-stepwise-planner",
        "portico-structured-planner",
        "portico-tavily",
        "portico-testkit",
        "portico-type-codecs",
        "portico-vectors",
        "portico-web-pages",
        "portico-wordllama",
    )
)
"""A test compares them with the workspace."""

"""The distributions of Portico: no other package can have their names.

For each distribution, the names that it registers besides its own: `portico-faiss` registers `faiss`, `portico-basics`
the names after it. A test compares the table with the workspace.
"""

from __future__ import annotations

import re

__all__ = ["SHIPPED", "folded"]

SHIPPED: dict[str, str] = {
    "portico": "",
    "portico-basics": "attrs cached contextual extractive folder fused jsonschema local msgspec plans prompts pydantic "
    "recorded retrieval sqlite vectors",
    "portico-bing": "",
    "portico-brave": "",
    "portico-core": "",
    "portico-dbos": "",
    "portico-documents": "",
    "portico-faiss": "",
    "portico-function-calling-planner": "",
    "portico-google": "",
    "portico-host": "",
    "portico-llamacpp": "",
    "portico-mediawiki": "",
    "portico-milvus": "",
    "portico-openai": "",
    "portico-openapi": "",
    "portico-postgres": "",
    "portico-searxng": "",
    "portico-sequential-planner": "",
    "portico-stepwise-planner": "",
    "portico-structured-planner": "",
    "portico-tavily": "",
    "portico-templates": "handlebars jinja2",
    "portico-testkit": "",
    "portico-web": "full-pages httpx web-pages",
    "portico-wordllama": "",
}


def folded(name: str) -> str:
    """Normalise a distribution's name as the packaging specification has it."""
    return re.sub(r"[-_.]+", "-", name).casefold()

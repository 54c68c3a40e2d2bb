"""For authors of packages: registrations, settings, HTTP, schemas, types, prompts and stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portico._lazy import lazy_names

if TYPE_CHECKING:
    from portico._bulk_embedding import EmbeddingBatch as EmbeddingBatch, StoreFilling as StoreFilling
    from portico._functions.middleware import run_together as run_together
    from portico._plugins.databases import Sqlite as Sqlite
    from portico._plugins.http import HttpRequest as HttpRequest, HttpResponse as HttpResponse
    from portico._plugins.registration import (
        Registration as Registration,
        Secret as Secret,
        Services as Services,
        ValueForm as ValueForm,
    )
    from portico._prompts.calling import FunctionCall as FunctionCall, TextForm as TextForm
    from portico._prompts.semantic_kernel import SemanticKernelTemplates as SemanticKernelTemplates
    from portico._runs.journal import RunState as RunState
    from portico._runs.rows import Rows as Rows
    from portico._schema.compare import JsonSchema as JsonSchema
    from portico._schema.strict import StrictForm as StrictForm
    from portico._schema.validate import PlainSchemaValidator as PlainSchemaValidator
    from portico._selection.words import spaced as spaced, words as words
    from portico._tool_loop.partial_json import PartialJson as PartialJson
    from portico._types.compiled import Compiled as Compiled, Fault as Fault, Mismatch as Mismatch
    from portico._types.compiling import compile_type as compile_type
else:
    __getattr__, __dir__ = lazy_names(__name__)

"""Portico: a plugin-based framework for applications on language models.

The core: ports, functions, plans and the kernel, on the standard library alone. A name is imported from its
module when it is first used, so that ``import portico`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = [
    "AgentReply",
    "AgentTurn",
    "And",
    "Answer",
    "AnyOf",
    "Budget",
    "ChatAgent",
    "ChatCapabilities",
    "ChatDelta",
    "ChatReply",
    "ChatRequest",
    "ChatService",
    "Citation",
    "ConfigurationError",
    "Context",
    "ContextProvider",
    "DropOldest",
    "DurableRuns",
    "EmbeddingGenerator",
    "Equal",
    "Filter",
    "From",
    "Function",
    "FunctionPlugin",
    "FunctionSelector",
    "FunctionSource",
    "FunctionsOffered",
    "FusedSearch",
    "HttpClient",
    "Infeasible",
    "Job",
    "JobQueue",
    "JobStatus",
    "Kernel",
    "ListOf",
    "Message",
    "Middleware",
    "Not",
    "ObjectOf",
    "Or",
    "PageReader",
    "PartialValue",
    "Plan",
    "PlanStore",
    "PlanTemplate",
    "Planner",
    "PorticoError",
    "Prompt",
    "PromptInput",
    "Pursuit",
    "Range",
    "Reduced",
    "Reducer",
    "Registration",
    "RequireApproval",
    "RunStore",
    "Runner",
    "SchemaValidator",
    "SearchCapabilities",
    "SearchConnector",
    "SearchContextProvider",
    "SearchIndex",
    "SearchParameter",
    "SearchResults",
    "Secret",
    "ServiceError",
    "Services",
    "Source",
    "Step",
    "Summarise",
    "Task",
    "TemplateLanguage",
    "Text",
    "TextOf",
    "TextSearch",
    "TextSearchOptions",
    "TextSearchResult",
    "Thread",
    "ToolCall",
    "ToolChoice",
    "ToolFinished",
    "ToolResult",
    "ToolStarted",
    "Trusted",
    "Turn",
    "TurnLimits",
    "TurnOutcome",
    "TypeCodec",
    "Usage",
    "Value",
    "VectorRecord",
    "VectorStore",
    "Vectors",
    "WebSearchConnector",
    "function",
    "plan_from_json",
    "plan_function",
    "plan_to_json",
    "plan_to_mermaid",
    "plan_to_text",
    "prompt_function",
    "search_method",
    "search_plugin",
]

if TYPE_CHECKING:
    from portico.agents.agent import ChatAgent
    from portico.agents.context import AgentTurn, Context, TurnOutcome
    from portico.agents.grounding import SearchContextProvider
    from portico.agents.reducing import DropOldest, Reduced, Reducer
    from portico.agents.replies import AgentReply
    from portico.agents.summarising import Summarise
    from portico.agents.thread import Thread
    from portico.chat import (
        ChatCapabilities,
        ChatDelta,
        ChatReply,
        ChatRequest,
        Citation,
        Message,
        Source,
        Text,
        ToolCall,
        ToolChoice,
        ToolResult,
        Usage,
    )
    from portico.errors import ConfigurationError, PorticoError, ServiceError
    from portico.filter import And, AnyOf, Equal, Filter, Not, Or, Range
    from portico.functions import Function, FunctionPlugin, function
    from portico.fused_search import FusedSearch
    from portico.jobs import Job, JobStatus
    from portico.kernel import Kernel
    from portico.middleware import Middleware, RequireApproval
    from portico.plans.json_form import plan_from_json, plan_to_json
    from portico.plans.mermaid import plan_to_mermaid
    from portico.plans.plan import From, ListOf, ObjectOf, Plan, PlanTemplate, Step, TextOf, Value
    from portico.plans.plan_functions import plan_function
    from portico.plans.task import Answer, Budget, Infeasible, Task
    from portico.plans.text_form import plan_to_text
    from portico.ports.chat_service import ChatService
    from portico.ports.context_provider import ContextProvider
    from portico.ports.durable_runs import DurableRuns
    from portico.ports.embedding_generator import EmbeddingGenerator
    from portico.ports.function_selector import FunctionSelector
    from portico.ports.function_source import FunctionSource
    from portico.ports.http_client import HttpClient
    from portico.ports.job_queue import JobQueue
    from portico.ports.page_reader import PageReader
    from portico.ports.plan_store import PlanStore
    from portico.ports.planner import Planner
    from portico.ports.run_store import RunStore
    from portico.ports.runner import Runner
    from portico.ports.schema_validator import SchemaValidator
    from portico.ports.search_index import SearchIndex
    from portico.ports.template_language import TemplateLanguage
    from portico.ports.text_search import TextSearch
    from portico.ports.type_codec import TypeCodec
    from portico.ports.vector_store import VectorRecord, VectorStore
    from portico.prompts.functions import prompt_function
    from portico.prompts.inputs import PromptInput
    from portico.prompts.prompt import Prompt, Trusted
    from portico.pursuit import Pursuit
    from portico.registration import Registration, Secret, Services
    from portico.search import (
        SearchCapabilities,
        SearchConnector,
        SearchResults,
        TextSearchOptions,
        TextSearchResult,
        search_method,
    )
    from portico.search_functions import SearchParameter, search_plugin
    from portico.turns import FunctionsOffered, PartialValue, ToolFinished, ToolStarted, Turn, TurnLimits
    from portico.vectors import Vectors
    from portico.web_search import WebSearchConnector

_MODULES = {
    "agents.replies": "AgentReply",
    "agents.reducing": "DropOldest Reduced Reducer",
    "agents.summarising": "Summarise",
    "agents.agent": "ChatAgent",
    "agents.grounding": "SearchContextProvider",
    "agents.context": "AgentTurn Context TurnOutcome",
    "agents.thread": "Thread",
    "ports.context_provider": "ContextProvider",
    "chat": "ChatCapabilities ChatDelta ChatReply ChatRequest Citation Message Source Text ToolCall ToolChoice "
    "ToolResult Usage",
    "errors": "ConfigurationError PorticoError ServiceError",
    "filter": "And AnyOf Equal Filter Not Or Range",
    "middleware": "Middleware RequireApproval",
    "fused_search": "FusedSearch",
    "functions": "Function FunctionPlugin function",
    "jobs": "Job JobStatus",
    "kernel": "Kernel",
    "plans.json_form": "plan_from_json plan_to_json",
    "plans.mermaid": "plan_to_mermaid",
    "plans.plan": "From ListOf ObjectOf Plan PlanTemplate Step TextOf Value",
    "plans.plan_functions": "plan_function",
    "plans.task": "Answer Budget Infeasible Task",
    "plans.text_form": "plan_to_text",
    "ports.chat_service": "ChatService",
    "ports.durable_runs": "DurableRuns",
    "ports.embedding_generator": "EmbeddingGenerator",
    "ports.function_selector": "FunctionSelector",
    "ports.function_source": "FunctionSource",
    "ports.http_client": "HttpClient",
    "ports.job_queue": "JobQueue",
    "ports.page_reader": "PageReader",
    "ports.plan_store": "PlanStore",
    "ports.planner": "Planner",
    "ports.run_store": "RunStore",
    "ports.runner": "Runner",
    "ports.schema_validator": "SchemaValidator",
    "ports.search_index": "SearchIndex",
    "ports.template_language": "TemplateLanguage",
    "ports.text_search": "TextSearch",
    "ports.type_codec": "TypeCodec",
    "ports.vector_store": "VectorRecord VectorStore",
    "prompts.functions": "prompt_function",
    "prompts.inputs": "PromptInput",
    "prompts.prompt": "Prompt Trusted",
    "pursuit": "Pursuit",
    "registration": "Registration Secret Services",
    "search": "SearchCapabilities SearchConnector SearchResults TextSearchOptions TextSearchResult search_method",
    "search_functions": "SearchParameter search_plugin",
    "turns": "FunctionsOffered PartialValue ToolFinished ToolStarted Turn TurnLimits",
    "vectors": "Vectors",
    "web_search": "WebSearchConnector",
}


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names.split():
            value = getattr(import_module(f"portico.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'portico' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

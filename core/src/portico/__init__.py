"""Portico: a plugin-based framework for applications on language models.

The core needs the standard library alone. A name is imported when it is first used: ``import portico`` costs next
to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from portico._lazy import lazy_names

if TYPE_CHECKING:
    from portico._agents.agent import AgentReply as AgentReply
    from portico._agents.agent import ChatAgent as ChatAgent
    from portico._agents.grounding import SearchContextProvider as SearchContextProvider
    from portico._agents.reducing import (
        DropOldest as DropOldest,
    )
    from portico._agents.reducing import (
        Reduced as Reduced,
    )
    from portico._agents.reducing import (
        Reducer as Reducer,
    )
    from portico._agents.reducing import (
        Summarise as Summarise,
    )
    from portico._agents.thread import AgentTurn as AgentTurn
    from portico._agents.thread import Context as Context
    from portico._agents.thread import ContextProvider as ContextProvider
    from portico._agents.thread import Thread as Thread
    from portico._agents.thread import TurnOutcome as TurnOutcome
    from portico._chat.messages import (
        ChatCapabilities as ChatCapabilities,
    )
    from portico._chat.messages import (
        ChatDelta as ChatDelta,
    )
    from portico._chat.messages import (
        ChatReply as ChatReply,
    )
    from portico._chat.messages import (
        ChatRequest as ChatRequest,
    )
    from portico._chat.messages import (
        Citation as Citation,
    )
    from portico._chat.messages import (
        Message as Message,
    )
    from portico._chat.messages import (
        Source as Source,
    )
    from portico._chat.messages import (
        Text as Text,
    )
    from portico._chat.messages import (
        ToolCall as ToolCall,
    )
    from portico._chat.messages import (
        ToolChoice as ToolChoice,
    )
    from portico._chat.messages import (
        ToolResult as ToolResult,
    )
    from portico._chat.messages import (
        Usage as Usage,
    )
    from portico._functions.functions import (
        Function as Function,
    )
    from portico._functions.functions import (
        FunctionPlugin as FunctionPlugin,
    )
    from portico._functions.functions import (
        function as function,
    )
    from portico._functions.middleware import (
        Middleware as Middleware,
    )
    from portico._functions.middleware import (
        RequireApproval as RequireApproval,
    )
    from portico._jobs import Job as Job
    from portico._jobs import JobStatus as JobStatus
    from portico._kernel import Kernel as Kernel
    from portico._plans.functions import plan_function as plan_function
    from portico._plans.json_form import (
        plan_from_json as plan_from_json,
    )
    from portico._plans.json_form import (
        plan_to_json as plan_to_json,
    )
    from portico._plans.plan import (
        From as From,
    )
    from portico._plans.plan import (
        ListOf as ListOf,
    )
    from portico._plans.plan import (
        ObjectOf as ObjectOf,
    )
    from portico._plans.plan import (
        Plan as Plan,
    )
    from portico._plans.plan import (
        PlanTemplate as PlanTemplate,
    )
    from portico._plans.plan import (
        Step as Step,
    )
    from portico._plans.plan import (
        TextOf as TextOf,
    )
    from portico._plans.plan import (
        Value as Value,
    )
    from portico._plans.task import (
        Answer as Answer,
    )
    from portico._plans.task import (
        Budget as Budget,
    )
    from portico._plans.task import (
        Infeasible as Infeasible,
    )
    from portico._plans.task import (
        Task as Task,
    )
    from portico._plans.text_form import (
        plan_to_mermaid as plan_to_mermaid,
    )
    from portico._plans.text_form import (
        plan_to_text as plan_to_text,
    )
    from portico._plugins.registration import (
        Registration as Registration,
    )
    from portico._plugins.registration import (
        Secret as Secret,
    )
    from portico._plugins.registration import (
        Services as Services,
    )
    from portico._ports.chat_service import ChatService as ChatService
    from portico._ports.durable_runs import DurableRuns as DurableRuns
    from portico._ports.embedding_generator import EmbeddingGenerator as EmbeddingGenerator
    from portico._ports.function_selector import FunctionSelector as FunctionSelector
    from portico._ports.function_source import FunctionSource as FunctionSource
    from portico._ports.http_client import HttpClient as HttpClient
    from portico._ports.job_queue import JobQueue as JobQueue
    from portico._ports.page_reader import PageReader as PageReader
    from portico._ports.plan_store import PlanStore as PlanStore
    from portico._ports.planner import Planner as Planner
    from portico._ports.run_store import RunStore as RunStore
    from portico._ports.runner import Runner as Runner
    from portico._ports.schema_validator import SchemaValidator as SchemaValidator
    from portico._ports.search_index import SearchIndex as SearchIndex
    from portico._ports.template_language import TemplateLanguage as TemplateLanguage
    from portico._ports.text_search import TextSearch as TextSearch
    from portico._ports.type_codec import TypeCodec as TypeCodec
    from portico._ports.vector_store import VectorStore as VectorStore
    from portico._prompts.functions import (
        PromptInput as PromptInput,
    )
    from portico._prompts.functions import (
        prompt_function as prompt_function,
    )
    from portico._prompts.prompt import (
        Prompt as Prompt,
    )
    from portico._prompts.prompt import (
        Trusted as Trusted,
    )
    from portico._runs.outcome import Pursuit as Pursuit
    from portico._search.filters import (
        And as And,
    )
    from portico._search.filters import (
        AnyOf as AnyOf,
    )
    from portico._search.filters import (
        Equal as Equal,
    )
    from portico._search.filters import (
        Filter as Filter,
    )
    from portico._search.filters import (
        Not as Not,
    )
    from portico._search.filters import (
        Or as Or,
    )
    from portico._search.filters import (
        Range as Range,
    )
    from portico._search.functions import (
        SearchParameter as SearchParameter,
    )
    from portico._search.functions import (
        search_plugin as search_plugin,
    )
    from portico._search.fused import FusedSearch as FusedSearch
    from portico._search.results import (
        SearchCapabilities as SearchCapabilities,
    )
    from portico._search.results import (
        SearchConnector as SearchConnector,
    )
    from portico._search.results import (
        SearchResults as SearchResults,
    )
    from portico._search.results import (
        TextSearchOptions as TextSearchOptions,
    )
    from portico._search.results import (
        TextSearchResult as TextSearchResult,
    )
    from portico._search.results import (
        search_method as search_method,
    )
    from portico._search.vectors import VectorRecord as VectorRecord
    from portico._search.vectors import Vectors as Vectors
    from portico._search.web import WebSearchConnector as WebSearchConnector
    from portico._selection.selection import FunctionsOffered as FunctionsOffered
    from portico._tool_loop.values import (
        PartialValue as PartialValue,
    )
    from portico._tool_loop.values import (
        ToolFinished as ToolFinished,
    )
    from portico._tool_loop.values import (
        ToolStarted as ToolStarted,
    )
    from portico._tool_loop.values import (
        Turn as Turn,
    )
    from portico._tool_loop.values import (
        TurnLimits as TurnLimits,
    )
    from portico.errors import (
        ConfigurationError as ConfigurationError,
    )
    from portico.errors import (
        PorticoError as PorticoError,
    )
    from portico.errors import (
        ServiceError as ServiceError,
    )

__getattr__, __dir__ = lazy_names(__name__)

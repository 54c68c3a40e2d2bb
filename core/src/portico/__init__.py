"""Portico: a plugin-based framework for applications on language models.

The core needs the standard library alone. A name is imported when it is first used: ``import portico`` costs next
to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from portico._lazy import lazy_names

if TYPE_CHECKING:
    from portico._agents.agent import AgentReply as AgentReply, ChatAgent as ChatAgent
    from portico._agents.grounding import SearchContextProvider as SearchContextProvider
    from portico._agents.reducing import (
        History as History,
        HistoryReducer as HistoryReducer,
        Reduced as Reduced,
        SummarizeHistory as SummarizeHistory,
        TrimHistory as TrimHistory,
    )
    from portico._agents.thread import (
        AgentTurn as AgentTurn,
        Context as Context,
        ContextProvider as ContextProvider,
        Thread as Thread,
    )
    from portico._chat.citations import Citations as Citations
    from portico._chat.messages import (
        Audio as Audio,
        ChatCapabilities as ChatCapabilities,
        ChatDelta as ChatDelta,
        ChatReply as ChatReply,
        ChatRequest as ChatRequest,
        Citation as Citation,
        File as File,
        Image as Image,
        Message as Message,
        Part as Part,
        Reasoning as Reasoning,
        Source as Source,
        Text as Text,
        Tool as Tool,
        ToolCall as ToolCall,
        ToolCallDelta as ToolCallDelta,
        ToolChoice as ToolChoice,
        ToolResult as ToolResult,
        Usage as Usage,
    )
    from portico._chat.passages import Passages as Passages
    from portico._flows.check import FlowReview as FlowReview
    from portico._flows.labels import FunctionLabels as FunctionLabels
    from portico._flows.policy import Policy as Policy
    from portico._functions.functions import (
        Function as Function,
        FunctionPlugin as FunctionPlugin,
        FunctionSpec as FunctionSpec,
        Parameter as Parameter,
        function as function,
    )
    from portico._functions.middleware import (
        FunctionInvocation as FunctionInvocation,
        Middleware as Middleware,
        PlanReview as PlanReview,
        ProposalInvocation as ProposalInvocation,
        RequireApproval as RequireApproval,
        RunInvocation as RunInvocation,
        StepRun as StepRun,
        TurnInvocation as TurnInvocation,
        current_step as current_step,
    )
    from portico._jobs import Job as Job, JobStatus as JobStatus
    from portico._kernel import Kernel as Kernel
    from portico._plans.functions import plan_function as plan_function
    from portico._plans.json_form import plan_from_json as plan_from_json, plan_to_json as plan_to_json
    from portico._plans.plan import (
        Each as Each,
        From as From,
        ListOf as ListOf,
        ObjectOf as ObjectOf,
        Plan as Plan,
        PlanTemplate as PlanTemplate,
        Step as Step,
        TextOf as TextOf,
        Value as Value,
        When as When,
    )
    from portico._plans.task import Answer as Answer, Budget as Budget, Infeasible as Infeasible, Task as Task
    from portico._plans.text_form import plan_to_mermaid as plan_to_mermaid, plan_to_text as plan_to_text
    from portico._plugins.registration import Registration as Registration, Secret as Secret, Services as Services
    from portico._ports.chat_service import ChatService as ChatService
    from portico._ports.durable_runs import DurableRuns as DurableRuns
    from portico._ports.embedding_generator import EmbeddingGenerator as EmbeddingGenerator
    from portico._ports.function_selector import FunctionSelector as FunctionSelector
    from portico._ports.function_source import FunctionSource as FunctionSource
    from portico._ports.http_client import HttpClient as HttpClient
    from portico._ports.job_queue import JobQueue as JobQueue
    from portico._ports.observer import Observer as Observer
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
    from portico._prompts.functions import PromptInput as PromptInput, prompt_function as prompt_function
    from portico._prompts.prompt import Prompt as Prompt, Trusted as Trusted
    from portico._runs.outcome import Paused as Paused, Proposal as Proposal, Run as Run
    from portico._search.filters import (
        And as And,
        AnyOf as AnyOf,
        Equal as Equal,
        Filter as Filter,
        Not as Not,
        Or as Or,
        Range as Range,
    )
    from portico._search.functions import SearchParameter as SearchParameter, search_plugin as search_plugin
    from portico._search.fused import FusedSearch as FusedSearch
    from portico._search.results import (
        SearchCapabilities as SearchCapabilities,
        SearchConnector as SearchConnector,
        SearchResults as SearchResults,
        TextSearchOptions as TextSearchOptions,
        TextSearchResult as TextSearchResult,
        search_method as search_method,
    )
    from portico._search.vectors import VectorRecord as VectorRecord, Vectors as Vectors
    from portico._search.web import WebSearchConnector as WebSearchConnector
    from portico._selection.selection import (
        Considered as Considered,
        FunctionsOffered as FunctionsOffered,
        Selection as Selection,
    )
    from portico._tool_loop.values import (
        ChosenFunctions as ChosenFunctions,
        PartialValue as PartialValue,
        ToolFinished as ToolFinished,
        ToolLoopLimits as ToolLoopLimits,
        ToolStarted as ToolStarted,
        Turn as Turn,
    )
    from portico.errors import (
        ConfigurationError as ConfigurationError,
        PorticoError as PorticoError,
        ServiceError as ServiceError,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

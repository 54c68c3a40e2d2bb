"""The ports, with the values that go through them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portico._lazy import lazy_names

if TYPE_CHECKING:
    from portico._agents.thread import ContextProvider as ContextProvider
    from portico._jobs import Job as Job, JobStatus as JobStatus, Worker as Worker
    from portico._plans.saved import SavedPlan as SavedPlan
    from portico._ports.chat_service import ChatService as ChatService
    from portico._ports.durable_runs import DurableRuns as DurableRuns
    from portico._ports.embedding_generator import EmbeddingGenerator as EmbeddingGenerator
    from portico._ports.function_selector import FunctionSelector as FunctionSelector
    from portico._ports.function_source import FunctionSource as FunctionSource
    from portico._ports.http_client import HttpClient as HttpClient
    from portico._ports.hybrid_search import HybridSearch as HybridSearch
    from portico._ports.job_queue import JobQueue as JobQueue
    from portico._ports.observer import Observer as Observer
    from portico._ports.page_reader import Page as Page, PageReader as PageReader
    from portico._ports.plan_store import PlanStore as PlanStore
    from portico._ports.planner import Planner as Planner
    from portico._ports.run_store import Lease as Lease, RunStore as RunStore
    from portico._ports.runner import Runner as Runner
    from portico._ports.schema_validator import SchemaValidator as SchemaValidator
    from portico._ports.search_index import (
        IndexProgress as IndexProgress,
        IndexReport as IndexReport,
        SearchIndex as SearchIndex,
    )
    from portico._ports.table import PORTS as PORTS, PortInfo as PortInfo
    from portico._ports.template_language import (
        CallFunction as CallFunction,
        Template as Template,
        TemplateLanguage as TemplateLanguage,
    )
    from portico._ports.text_search import TextSearch as TextSearch
    from portico._ports.type_codec import TypeCodec as TypeCodec
    from portico._ports.vector_store import VectorStore as VectorStore
else:
    __getattr__, __dir__ = lazy_names(__name__)

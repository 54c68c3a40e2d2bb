"""Conformance kits and fakes for the ports of Portico.

A kit is a class of tests for one port. Subclass it in your package's ``tests/test_contract.py`` and give the
fixture named for the port; its docstring shows how.

- `portico_testkit.chat_service.ChatServiceKit`
- `portico_testkit.context_provider.ContextProviderKit`
- `portico_testkit.durable_runs.DurableRunsKit`: for a runner that records
- `portico_testkit.embedding_generator.EmbeddingGeneratorKit`
- `portico_testkit.function_selector.FunctionSelectorKit`
- `portico_testkit.function_source.FunctionSourceKit`
- `portico_testkit.http_client.HttpClientKit`
- `portico_testkit.job_queue.JobQueueKit`: for a runner that has workers
- `portico_testkit.hybrid_search.HybridSearchKit`: beside `VectorStoreKit`, for stores that have it
- `portico_testkit.observer.ObserverKit`
- `portico_testkit.package.PackageKit`: for a package as such
- `portico_testkit.page_reader.PageReaderKit`
- `portico_testkit.plan_store.PlanStoreKit`
- `portico_testkit.planner.PlannerKit`
- `portico_testkit.run_store.RunStoreKit`
- `portico_testkit.runner.RunnerKit`
- `portico_testkit.schema_validator.SchemaValidatorKit`
- `portico_testkit.search_index.SearchIndexKit`
- `portico_testkit.template_language.TemplateLanguageKit`
- `portico_testkit.text_search.TextSearchKit`
- `portico_testkit.type_codec.TypeCodecKit`
- `portico_testkit.vector_store.VectorStoreKit`
- `portico_testkit.web_search.WebSearchKit`
- `portico_testkit.whole_plan.WholePlanKit`: a `PlannerKit` for planners that have a model write the whole plan

`portico_testkit.fakes` has a stand-in for each port, `portico_testkit.strategies` draws with Hypothesis what
crosses them.
"""

import sys
from pkgutil import iter_modules

__all__: list[str] = []

if "pytest" in sys.modules:
    # So that a failure in a kit shows both sides of its comparison, as in a test module. This has to come before the
    # kits are imported: https://docs.pytest.org/en/stable/how-to/writing_plugins.html#assertion-rewriting
    sys.modules["pytest"].register_assert_rewrite(*(f"{__name__}.{module.name}" for module in iter_modules(__path__)))

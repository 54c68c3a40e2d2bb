"""What portico-basics registers: one function a hook, one line a registration."""

from portico.plugins import Registration


def portico_chat_services() -> list[Registration]:
    """Register the chat service that quotes its sources."""
    return [
        _offer(
            "extractive",
            "extractive.chat:ExtractiveChat",
            "config:ExtractiveSettings",
            "Answers a question by quoting its sources. Needs no model.",
        )
    ]


def portico_embedding_generators() -> list[Registration]:
    """Register the cache of embeddings."""
    return [
        _offer(
            "cached",
            "cached_embeddings.embeddings:from_services",
            "config:CachedEmbeddingsSettings",
            "Keeps the vectors of another embedding generator on disk.",
        )
    ]


def portico_function_plugins() -> list[Registration]:
    """Register the function that answers, and those of a folder of plans and of a folder of prompts."""
    return [
        _offer(
            "answers",
            "retrieval.functions:Answers",
            "config:AnswersSettings",
            "Answers a question in words from what searches found.",
        ),
        _offer(
            "plans",
            "plan_folder.functions:PlanFiles",
            "config:PlanFolderSettings",
            "Makes a function of each plan in a folder.",
        ),
        _offer(
            "prompts",
            "prompts.functions:PromptFiles",
            "config:PromptFilesSettings",
            "Makes a function of each prompt in a folder.",
        ),
    ]


def portico_function_selectors() -> list[Registration]:
    """Register the selector that reads the conversation."""
    return [
        _offer(
            "contextual",
            "contextual.choosing:make_selector",
            "config:ContextualSettings",
            "Offers a model the few functions that fit the conversation.",
        )
    ]


def portico_plan_stores() -> list[Registration]:
    """Register the store of plans in a folder."""
    return [_offer("folder", "plan_folder.store:FolderPlanStore", "config:PlanFolderSettings", "Saves plans as files.")]


def portico_planners() -> list[Registration]:
    """Register the planners that need no model."""
    return [
        _offer(
            "recorded",
            "recorded.planner:RecordedPlanner",
            "config:RecordedSettings",
            "Replays a plan from a file or a run of the journal, without a model.",
        ),
        _offer(
            "retrieval",
            "retrieval.planner:RetrievalPlanner",
            "config:RetrievalSettings",
            "Searches every source at once and answers with citations. Needs no model.",
        ),
    ]


def portico_run_stores() -> list[Registration]:
    """Register the journal in SQLite."""
    return [
        _offer(
            "sqlite",
            "sqlite.store:SqliteRunStore",
            "config:SqliteSettings",
            "Keeps the journal of runs in one SQLite file, which several processes may share.",
        )
    ]


def portico_runners() -> list[Registration]:
    """Register the runner of this process."""
    return [
        _offer(
            "local",
            "local_runner.runner:LocalRunner",
            "config:LocalRunnerSettings",
            "Runs steps in this process, a number of them at a time.",
        )
    ]


def portico_schema_validators() -> list[Registration]:
    """Register the validator on jsonschema."""
    return [
        _offer(
            "jsonschema",
            "jsonschema.validator:JsonschemaValidator",
            "config:JsonschemaSettings",
            "Checks values against all of JSON Schema 2020-12. Never fetches a reference.",
        )
    ]


def portico_text_searches() -> list[Registration]:
    """Register the searches over other sources and over vector stores."""
    return [
        _offer(
            "fused",
            "fused.search:FusedTextSearch",
            "config:FusedSettings",
            "Asks several sources at once and merges their rankings.",
        ),
        _offer(
            "vectors",
            "vectors.search:make_search",
            "config:VectorsSettings",
            "Searches the records of a vector store by meaning.",
        ),
    ]


def portico_type_codecs() -> list[Registration]:
    """Register the three codecs; none imports its vendor before it meets a type of it."""
    what = "as parameters and results of functions."
    return [
        _offer("attrs", "type_codecs.codecs:AttrsTypeCodec", None, f"Classes of attrs {what}"),
        _offer("msgspec", "type_codecs.codecs:MsgspecTypeCodec", None, f"Structs and constraints of msgspec {what}"),
        _offer(
            "pydantic",
            "type_codecs.codecs:PydanticTypeCodec",
            None,
            f"Models, dataclasses and constraints of pydantic {what}",
        ),
    ]


def _offer(name: str, factory: str, settings: str | None, summary: str) -> Registration:
    return Registration(
        name=name,
        summary=summary,
        factory=f"portico_basics.{factory}",
        settings=settings and f"portico_basics.{settings}",
    )

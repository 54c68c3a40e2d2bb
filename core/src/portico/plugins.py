"""For authors of packages: registrations, settings, HTTP, schemas, types, prompts and stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portico._lazy import lazy_names

if TYPE_CHECKING:
    from portico._bulk_embedding.batch import EmbeddingBatch as EmbeddingBatch
    from portico._bulk_embedding.workers import StoreFilling as StoreFilling
    from portico._chat.messages import (
        check_request as check_request,
        estimated_tokens as estimated_tokens,
        render_sources as render_sources,
        several_texts as several_texts,
    )
    from portico._functions.names import (
        find_name as find_name,
        text_manual as text_manual,
        wire_name as wire_name,
    )
    from portico._plugins.databases import (
        sqlite_error as sqlite_error,
        sqlite_errors as sqlite_errors,
        transaction as transaction,
        use_log as use_log,
    )
    from portico._plugins.http import (
        HttpRequest as HttpRequest,
        HttpResponse as HttpResponse,
        retry_after as retry_after,
        service_error as service_error,
        without_secrets as without_secrets,
    )
    from portico._plugins.registration import (
        Registration as Registration,
        Secret as Secret,
        Services as Services,
        ValueForm as ValueForm,
        database_uri as database_uri,
        one_of as one_of,
        place_of as place_of,
        service_address as service_address,
        service_key as service_key,
    )
    from portico._prompts.calling import (
        CallPlaces as CallPlaces,
        FunctionCall as FunctionCall,
        TextForm as TextForm,
        caller as caller,
    )
    from portico._prompts.functions import (
        REQUIRED as REQUIRED,
        compiled_input as compiled_input,
        parameter_of as parameter_of,
    )
    from portico._prompts.prompt import (
        Piece as Piece,
        fault as fault,
    )
    from portico._prompts.semantic_kernel import SemanticKernelTemplates as SemanticKernelTemplates
    from portico._runs.journal import (
        RunState as RunState,
        StartedStep as StartedStep,
    )
    from portico._runs.rows import (
        ending as ending,
        entry_of as entry_of,
        entry_text as entry_text,
        name_bytes as name_bytes,
        name_of as name_of,
        name_shown as name_shown,
        stale as stale,
    )
    from portico._schema.compare import (
        fitting_paths as fitting_paths,
        meeting as meeting,
    )
    from portico._schema.definitions import (
        free_name as free_name,
        hoisted as hoisted,
        with_definitions as with_definitions,
    )
    from portico._schema.strict import (
        StrictForm as StrictForm,
        strict_form as strict_form,
        within_limits as within_limits,
    )
    from portico._schema.validate import PlainSchemaValidator as PlainSchemaValidator
    from portico._schema.values import (
        ANNOTATIONS as ANNOTATIONS,
        accepts as accepts,
        resolve as resolve,
    )
    from portico._selection.words import (
        spaced as spaced,
        words as words,
    )
    from portico._tool_loop.partial_json import (
        NOTHING as NOTHING,
        PartialJson as PartialJson,
        values_in as values_in,
    )
    from portico._tool_loop.structured import ReplyFault as ReplyFault
    from portico._tool_loop.toolset import tool_form as tool_form
    from portico._types.compiled import (
        Compiled as Compiled,
        Fault as Fault,
        Mismatch as Mismatch,
        likely as likely,
        place as place,
        refuse as refuse,
    )
    from portico._types.compiling import (
        compile_type as compile_type,
        json_default as json_default,
    )
    from portico._types.docstrings import (
        Documentation as Documentation,
        describe_class as describe_class,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

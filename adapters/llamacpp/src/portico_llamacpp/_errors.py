"""Failures of llama.cpp and its process as errors of the ports."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable

from portico.errors import (
    ConfigurationError,
    ContextOverflow,
    PorticoError,
    SchemaUnsupported,
    ServiceError,
    ServiceUnavailable,
)
from portico_llamacpp._wire import Failure

_WHO = "The chat service 'llamacpp'"
_SCHEMA = re.compile(r"JSON schema (?:error at|conversion failed:)\s*(.*)", re.DOTALL)
_LOG_HEAD = re.compile(r"^[\d.]+ [A-Z] (?:\w+ +)?(?:[\w()]+: +)+")
_REASON = re.compile(r"error|unknown|not enough|failed to allocate|unable|corrupt", re.IGNORECASE)
_LONGEST = 300


def refusal(failure: Failure, *, constrained: bool) -> PorticoError:
    """Return the error for a request that llama.cpp refused; ``constrained`` ones had a schema."""
    message = failure.message
    if failure.type == "exceed_context_size_error":
        return ContextOverflow(
            f"{_WHO} was asked with {failure.n_prompt_tokens} tokens, and its context has {failure.n_ctx}. "
            "Send less, or set a larger context_size, as far as the model allows."
        )
    if (match := _SCHEMA.search(message)) is not None:
        return SchemaUnsupported(f"llama.cpp cannot hold a reply to this JSON Schema: {_short(match.group(1))}")
    if constrained and "grammar" in message:
        return SchemaUnsupported(
            "llama.cpp cannot hold a reply to this JSON Schema: it makes no grammar of it. "
            "References that lead in a circle and very large bounds do that."
        )
    return ServiceError(f"{_WHO} refused the request: {_short(message)}")


def unfit(model: str, failure: Failure, log: Iterable[str]) -> PorticoError:
    """Return the error for a model that could not be loaded."""
    if failure.type == "NotGguf":
        return ConfigurationError(
            f"{model} is not a GGUF file: {failure.message}. Set `model` of [chat.llamacpp] to a GGUF file."
        )
    if failure.type in ("ImportError", "ModuleNotFoundError"):
        return ServiceUnavailable(f"{_WHO} cannot import xllamacpp: {failure.message}. Run `pip install xllamacpp`.")
    log = list(log)
    lines = [_LOG_HEAD.sub("", line).strip() for line in log]
    reason = next((line for line in lines if _REASON.search(line)), failure.message)
    if any("chat_template" in line for line in log):
        return ConfigurationError(f"The chat template for {model} is not one that llama.cpp can use: {_short(reason)}")
    return ServiceUnavailable(f'{_WHO} cannot load {model}: {_short(reason)}. `log = "errors"` shows all of it.')


def end_error(model: str, code: int, log: Iterable[str]) -> ServiceUnavailable:
    """Return the error for a process that ended unexpectedly."""
    how = f"exit code {code}"
    if code < 0:
        how = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    last = _short(" ".join(_LOG_HEAD.sub("", line).strip() for line in list(log)[-5:]))
    advice = " Too little memory is the usual reason." if how == "SIGKILL" else ""
    said = f" It last said: {last}" if last else ""
    return ServiceUnavailable(f"The process that runs {model} ended ({how}).{advice}{said}")


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"

"""From settings to a process that loads a model."""

from __future__ import annotations

from typing import Any

from portico_llamacpp._process import ModelProcess
from portico_llamacpp._weights import template, weights
from portico_llamacpp.config import LlamaCppSettings

_VERBOSITY = {"none": 1, "errors": 1, "all": 3}


def start(settings: LlamaCppSettings, **server: Any) -> ModelProcess:
    """Start a process that loads the model of these settings; ``server`` is what only an HTTP server has.

    Errors are always written, since a failed load is explained from them; whether anybody sees them is a setting.
    Raises ``ConfigurationError`` for a file that does not exist, ``ServiceUnavailable`` where no process can start.
    """
    model = weights(settings.model)
    configuration = {
        "model": str(model),
        "context_size": settings.context_size,
        "parallel": settings.parallel,
        "threads": settings.threads,
        "gpu_layers": settings.gpu_layers,
        "chat_template": template(settings.chat_template),
        "verbosity": _VERBOSITY[settings.log],
        **server,
    }
    return ModelProcess(model.name, configuration, slots=settings.parallel, show_log=settings.log != "none")

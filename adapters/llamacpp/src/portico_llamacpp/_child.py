"""The model's process: loads the weights, then answers requests that come as lines of JSON.

It is a process because loading holds the interpreter's lock (xllamacpp 2026.10), llama.cpp writes to standard error,
and a failed assertion in it ends its process.

Standard input has the configuration, then requests as ``1 {…}`` and cancellations as ``-1``. Standard output has
``{"ready": …}`` or ``{"failed": …}``; then ``{"id": 1, "chunk": …}`` for each piece of a reply, and at last
``{"id": 1, "end": true}``, with ``error`` if llama.cpp refused. The process ends when its input ends.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import secrets
import signal
import struct
import sys
import threading
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_CONTROL, _USER_DEFINED = 3, 4
# Some files mark the tokens that open and close a turn as "user-defined"; llama.cpp treats them as control tokens.
_TURN_MARK = re.compile(r"<\|[^|]*\|>|<(?:start|end)_of_turn>")


class NotGguf(ValueError):
    """The file is not a GGUF file, or its head is damaged."""


@dataclass(frozen=True, slots=True)
class Head:
    """``control`` are the texts that a tokenizer turns into control tokens, such as ``<|im_end|>``."""

    context_size: int | None
    control: tuple[str, ...]


def read_head(path: Path) -> Head:
    """Read the head of a file. Raises ``OSError`` and `NotGguf`."""
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise NotGguf("it does not begin with the letters GGUF")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _Reader(data).head()
            except (struct.error, IndexError, KeyError, UnicodeDecodeError) as error:
                raise NotGguf("its head is damaged") from error


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.place = 4

    def head(self) -> Head:
        if self.number("I") not in (2, 3):
            raise NotGguf("it is of a version other than 2 and 3")
        self.number("Q")
        values: dict[str, Any] = {}
        for _ in range(self.number("Q")):
            name = self.text()
            values[name] = self.value(self.number("I"))
        size = values.get(f"{values.get('general.architecture')}.context_length")
        return Head(
            context_size=size if isinstance(size, int) and size > 0 else None,
            control=self.control(values.get("tokenizer.ggml.tokens"), values.get("tokenizer.ggml.token_type")),
        )

    def control(self, places: Any, kinds: Any) -> tuple[str, ...]:
        if not isinstance(places, list) or not isinstance(kinds, tuple):
            return ()
        found = []
        for (start, end), kind in zip(places, kinds, strict=False):
            if kind in (_CONTROL, _USER_DEFINED):
                text = self.data[start:end].decode("utf-8", "replace")
                if len(text) > 1 and (kind == _CONTROL or _TURN_MARK.fullmatch(text)):
                    found.append(text)
        return tuple(found)

    def number(self, code: str) -> Any:
        (value,) = struct.unpack_from(f"<{code}", self.data, self.place)
        self.place += struct.calcsize(f"<{code}")
        return value

    def span(self) -> tuple[int, int]:
        length = self.number("Q")
        start, self.place = self.place, self.place + length
        if self.place > len(self.data):
            raise NotGguf("its head is cut short")
        return start, self.place

    def text(self) -> str:
        start, end = self.span()
        return self.data[start:end].decode("utf-8")

    def value(self, kind: int) -> Any:
        """Read one value. An array of strings is returned as places, since a vocabulary is large."""
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.number(_SCALARS[kind])
        inner, count = self.number("I"), self.number("Q")
        if inner == _STRING:
            return [self.span() for _ in range(count)]
        if inner == _ARRAY:
            return [self.value(_ARRAY) for _ in range(count)]
        layout = f"<{count}{_SCALARS[inner]}"
        if self.place + struct.calcsize(layout) > len(self.data):
            raise NotGguf("its head is cut short")
        values = struct.unpack_from(layout, self.data, self.place)
        self.place += struct.calcsize(layout)
        return values


_PROMPT_CACHE_MIB = 512
_FEW_PROCESSORS = 4
_BATCH_ON_PROCESSOR, _BATCH_ON_GPU = 256, 512


class _Worker:
    def __init__(self, server: Any, output: BinaryIO) -> None:
        self.server = server
        self.output = output
        self.writing = threading.Lock()
        self.running: dict[int, threading.Event] = {}

    def send(self, line: bytes) -> None:
        with self.writing:
            self.output.write(line + b"\n")
            self.output.flush()

    def obey(self, line: bytes) -> None:
        number, _, body = line.partition(b" ")
        id = int(number)
        if id < 0:
            stop = self.running.get(-id)
            if stop is not None:
                stop.set()
            return
        stop = self.running[id] = threading.Event()
        threading.Thread(target=self.answer, args=(id, body, stop), daemon=True).start()

    def answer(self, id: int, body: bytes, stop: threading.Event) -> None:
        def piece(chunk: bytes) -> bool:
            """Send a piece; return True to end the generation and free its slot."""
            try:
                if not stop.is_set():
                    self.send(b'{"id":%d,"chunk":%s}' % (id, chunk))
            except OSError:  # the other side has closed
                return True
            return stop.is_set()

        last: dict[str, Any] = {"id": id, "end": True}
        try:
            self.server.handle_chat_completions(body, piece)
        except Exception as error:  # noqa: BLE001 - whatever C++ threw is told to who asked
            last["error"] = {"message": str(error), "type": type(error).__name__}
        del self.running[id]
        self.send(json.dumps(last).encode())


def _main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Output of C++ must not mix with the lines that are sent.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    configuration = json.loads(sys.stdin.buffer.readline() or b"null")
    if configuration is None:
        return
    worker = _Worker(None, output)
    try:
        worker.server, about = _load(configuration)
    except Exception as error:  # noqa: BLE001 - the other side raises its own error
        worker.send(json.dumps({"failed": {"message": str(error), "type": type(error).__name__}}).encode())
        return
    worker.send(json.dumps({"ready": about}).encode())
    for line in sys.stdin.buffer:
        worker.obey(line)
    # There is nothing to save, so do not wait for threads and destructors.
    os._exit(0)


def _load(configuration: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    path = Path(configuration["model"])
    head = read_head(path)
    from xllamacpp import CommonParams, Server, get_device_info, ggml_backend_dev_type, llama_pooling_type  # type: ignore[import-untyped]

    processor = ggml_backend_dev_type.GGML_BACKEND_DEVICE_TYPE_CPU
    has_gpu = any(device["type"] != processor for device in get_device_info())
    size = min(configuration["context_size"], head.context_size or configuration["context_size"])
    key = configuration.get("api_key") or secrets.token_urlsafe(24)
    params = CommonParams()
    params.model.path = str(path)
    params.model_alias = {path.stem}
    params.n_parallel = configuration["parallel"]
    params.n_ctx = size * configuration["parallel"]
    params.n_batch = params.n_ubatch = _BATCH_ON_GPU if has_gpu else _BATCH_ON_PROCESSOR
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.prefill_assistant = False
    params.warmup = False
    params.verbosity = configuration["verbosity"]
    # To find out how much of the model fits on a GPU, the file is read twice.
    params.fit_params = has_gpu and configuration["gpu_layers"] is None
    if configuration["gpu_layers"] is not None:
        params.n_gpu_layers = configuration["gpu_layers"]
    params.cpuparams.n_threads = configuration["threads"] or _threads()
    if configuration["chat_template"] is not None:
        params.chat_template = configuration["chat_template"]
    # The library always listens: here on loopback, and only with a key.
    params.hostnames = ["127.0.0.1"]
    params.port = configuration.get("port") or 0
    params.api_keys = [key]
    params.ui = False
    if configuration.get("serve"):
        # A text to embed must fit into one batch.
        params.n_batch = params.n_ubatch = max(params.n_batch, min(size, 2048))
        params.embedding = True
        # Otherwise the texts of one batch are cut to the shortest, and a mean is only that of the last part
        # (llama.cpp of October 2026).
        params.kv_unified = True
        params.kv_unified_per_slot = size
        if configuration["pooling"] is not None:
            params.pooling_type = llama_pooling_type[f"LLAMA_POOLING_TYPE_{configuration['pooling'].upper()}"]
    else:
        params.n_threads_http = 1
    server = Server(params)
    properties = _properties(server.listening_address, key)
    return server, {
        "address": server.listening_address,
        "model": path.stem,
        "context_size": properties["default_generation_settings"]["n_ctx"],
        "tools": bool(properties.get("chat_template_caps", {}).get("supports_tools")),
        "control": head.control,
    }


def _threads() -> int:
    """Return a number of threads that leaves processors to others.

    The threads of llama.cpp wait for each other after every layer: on two processors, of which one is busy, two threads
    are twenty times slower than one.
    """
    count = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    return count // 2 if count > _FEW_PROCESSORS else max(1, count - 1)


def _properties(address: str, key: str) -> dict[str, Any]:
    """Read the model's properties, which only the HTTP server provides."""
    connection = HTTPConnection(urlsplit(address).netloc, timeout=30)
    try:
        connection.request("GET", "/props", headers={"Authorization": f"Bearer {key}"})
        properties: dict[str, Any] = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return properties


if __name__ == "__main__":
    _main()

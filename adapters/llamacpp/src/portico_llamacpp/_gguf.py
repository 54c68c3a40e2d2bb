"""What the head of a GGUF file says of its model: names, context, control tokens.

The format is little-endian: magic ``GGUF``, version, number of tensors, number of entries, then the entries, each a
name, a type and a value (the GGUF specification of the ggml project). Only what stands before the tensors is read.
Imports the standard library only: the model's process starts with it.
"""

from __future__ import annotations

import mmap
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_CONTROL, _USER_DEFINED = 3, 4
# Some files call the tokens that open and close a turn "user-defined"; llama.cpp knows better, as this does.
_TURN_MARK = re.compile(r"<\|[^|]*\|>|<(?:start|end)_of_turn>")


class NotGguf(ValueError):
    """The file is no GGUF file, or its head is damaged."""


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
        """Read one value. An array of strings comes as their places: a vocabulary is never decoded as a whole."""
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

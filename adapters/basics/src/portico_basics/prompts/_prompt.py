"""What a prompt's settings say, as values of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Input:
    """One input: a JSON Schema and, where it may be left out, what stands for it."""

    schema: Mapping[str, Any]
    description: str = ""
    required: bool = True
    default: Any = None
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """The settings of one prompt; None is what the file does not say. ``options`` are those of a turn."""

    name: str | None = None
    description: str = ""
    language: str | None = None
    template: str | None = None
    inputs: Mapping[str, Input] = field(default_factory=dict)
    returns: Mapping[str, Any] | None = None
    effects: bool = False
    tags: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

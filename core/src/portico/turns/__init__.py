"""Turns of a model: ask, carry out its calls, ask again, until there is an answer of the form asked for."""

from __future__ import annotations

from portico.turns.values import (
    Asked,
    ChosenFunctions,
    FunctionsOffered,
    PartialValue,
    RequestOptions,
    ToolFinished,
    ToolStarted,
    Turn,
    TurnEvent,
    TurnLimits,
    TurnOptions,
)

__all__ = [
    "Asked",
    "ChosenFunctions",
    "FunctionsOffered",
    "PartialValue",
    "RequestOptions",
    "ToolFinished",
    "ToolStarted",
    "Turn",
    "TurnEvent",
    "TurnLimits",
    "TurnOptions",
]

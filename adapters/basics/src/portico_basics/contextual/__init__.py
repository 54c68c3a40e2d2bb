"""Offers a model the few functions that fit the conversation."""

from portico_basics.contextual.choosing import ContextualSelector, SelectionOptions
from portico_basics.contextual.provider import ContextualFunctionOptions, ContextualFunctionProvider

__all__ = ["ContextualFunctionOptions", "ContextualFunctionProvider", "ContextualSelector", "SelectionOptions"]

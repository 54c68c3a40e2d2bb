"""Strict mode: the JSON Schema that services such as OpenAI hold a model to, and the way there and back."""

from __future__ import annotations

from portico.strict._limits import within_limits
from portico.strict._narrowing import require_nullable_defaults
from portico.strict.form import StrictForm, strict_form

__all__ = ["StrictForm", "require_nullable_defaults", "strict_form", "within_limits"]

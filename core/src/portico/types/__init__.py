"""Python types to JSON Schema, and values of them to JSON and back."""

from __future__ import annotations

from portico.types.compiled import Compiled, Fault, Mismatch
from portico.types.compiling import compile_type, json_default

__all__ = ["Compiled", "Fault", "Mismatch", "compile_type", "json_default"]

"""What authors of packages need beside the ports: registrations, settings, schemas and helpers."""

from __future__ import annotations

from portico._schema.strict import StrictForm, strict_form, within_limits

__all__ = ["StrictForm", "strict_form", "within_limits"]

"""Services of the packages that are installed, as an application has them without settings."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

import pytest

from portico.ports import HttpClient
from portico_testkit.fakes.services import FixedServices

__all__ = ["installed_http_client"]


def installed_http_client() -> HttpClient:
    """Return the HttpClient of the package that is installed for it, without settings."""
    for entry_point in entry_points(group="portico"):
        hook = getattr(entry_point.load(), "portico_http_clients", None)
        for registration in hook() if hook is not None else ():
            chosen = registration.settings
            chosen = _imported(chosen) if isinstance(chosen, str) else chosen
            client: HttpClient = _imported(registration.factory)(None if chosen is None else chosen(), FixedServices())
            return client
    return pytest.fail("No HttpClient is installed. Install portico-web, or give the fixture http_client.")


def _imported(reference: str) -> Any:
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)

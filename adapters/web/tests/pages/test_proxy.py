"""A proxy that is set looks names up by itself: what a link spells out is still checked."""

from __future__ import annotations

from typing import Any

import pytest

from portico.errors import AccessRefused
from portico.plugins import Secret
from portico_web.pages.config import WebPagesSettings
from portico_web.pages.reader import WebPagesPageReader


async def test_requests_go_through_the_proxy(site: Any, answer: Any) -> None:
    site.routes["http://site.example/page"] = answer("Through the proxy.")
    settings = WebPagesSettings(proxy=Secret(f"http://user:word@127.0.0.1:{site.port}"))
    reader = WebPagesPageReader(settings)
    assert (await reader.read("http://site.example/page")).text == "Through the proxy."
    assert [request.path for request in site.requests] == ["http://site.example/robots.txt", "http://site.example/page"]
    assert site.requests[0].headers["proxy-authorization"].startswith("Basic ")
    for link in (
        "http://10.0.0.1/",
        "http://localhost/",
        "http://metadata.google.internal/",
        "http://site.example:22/",
    ):
        with pytest.raises(AccessRefused):
            await reader.read(link)
    with pytest.raises(AccessRefused):
        await WebPagesPageReader(WebPagesSettings(proxy=settings.proxy, allow=("10.0.0.0/8",))).read("http://intranet/")
    assert len(site.requests) == 2
    await reader.aclose()
    assert "word" not in repr(settings)

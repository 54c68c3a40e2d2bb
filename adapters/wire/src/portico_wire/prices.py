"""What replies cost: the price in the settings, or the published one that genai-prices has."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from portico import Usage
from portico_wire.settings import ConnectionSettings


class Prices:
    """The price of one model at one address.

    >>> prices = Prices(ConnectionSettings(model="m", base_url="http://127.0.0.1/v1", price={"input": 1, "output": 4}))
    >>> prices.known, prices.add(Usage(1_000, 500), "m").cost
    (True, 0.003)

    Published prices change: those are used that came with the installed version of genai-prices.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._unknown: set[str] = set()

    @cached_property
    def known(self) -> bool:
        """Whether the price of the settings' model is known."""
        return bool(self._settings.price) or self._published(Usage(1, 1), self._settings.model) is not None

    def add(self, usage: Usage, model: str) -> Usage:
        """Return the usage with its cost. ``model`` is what the reply says: often a dated name."""
        if usage == Usage():
            return usage
        if price := self._settings.price:
            full = price["input"]
            fresh = max(0, usage.input_tokens - usage.cached_tokens - usage.cache_written_tokens)
            read = fresh * full + usage.cached_tokens * price.get("cached", full)
            written = usage.cache_written_tokens * price.get("cache_written", full)
            return replace(usage, cost=(read + written + usage.output_tokens * price["output"]) / 1_000_000)
        for name in dict.fromkeys((model, self._settings.model)):
            if (cost := self._published(usage, name)) is not None:
                return replace(usage, cost=cost)
        return usage

    def _published(self, usage: Usage, model: str) -> float | None:
        if model in self._unknown:
            return None
        import genai_prices  # imports pydantic

        counts = {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_written_tokens,
            self._settings.cache_tokens: usage.cache_written_tokens,
        }
        try:
            found = genai_prices.calc_price(
                genai_prices.Usage(**counts), model, provider_api_url=self._settings.address
            )
        except LookupError:
            self._unknown.add(model)
            return None
        except ValueError:  # counts that cannot be
            return None
        return float(found.total_price)

"""What `portico-acme` registers."""

from dataclasses import dataclass

from portico.plugins import Secret


@dataclass
class Settings:
    key: Secret
    limit: int = 5


class Search:
    name = "acme"
    index = capabilities = None

    def __init__(self, settings, services): ...
    async def search(self, query, options=None): ...
    async def get_text_search_results(self, query, options=None): ...
    async def get_search_results(self, query, options=None): ...

"""A function selector that needs no store and no vectors."""

from __future__ import annotations

from collections.abc import Sequence

from portico import Considered, FunctionSpec, Selection

__all__ = ["WordSelector"]


class WordSelector:
    """Offers the functions whose names and descriptions share most words with the context.

    >>> import asyncio
    >>> from portico import Function
    >>> def forecast(city: str) -> str:
    ...     return "Sun"
    >>> def invoice(number: int) -> str:
    ...     return "Paid"
    >>> specs = [Function.of(each).spec for each in (forecast, invoice)]
    >>> asyncio.run(WordSelector(1).select(specs, ["Is the invoice paid?"])).names
    ('invoice',)

    ``contexts`` are those that it was asked with.
    """

    name = "words"

    def __init__(self, limit: int = 8, *, always: Sequence[str] = ()) -> None:
        self.limit = limit
        self.always = frozenset(always)
        self.contexts: list[tuple[str, ...]] = []

    async def select(
        self, functions: Sequence[FunctionSpec], context: Sequence[str], *, limit: int | None = None
    ) -> Selection:
        """Choose by counting words."""
        limit = self.limit if limit is None else limit
        if limit < 0:
            raise ValueError(f"limit must be at least 0, not {limit}")
        texts = tuple(text for text in context if text.strip())
        self.contexts.append(texts)
        if len(functions) <= limit:
            return Selection(tuple(Considered(each.name, "all") for each in functions), considered=len(functions))
        first = tuple(Considered(each.name, "always") for each in functions if each.name in self.always)
        wanted = _words(" ".join(texts))
        scores = {
            each.name: float(len(wanted & _words(f"{each.name} {each.description}")))
            for each in functions
            if each.name not in self.always
        }
        ranked = sorted(scores, key=lambda name: (-scores[name], name))
        most = limit if wanted else 0
        return Selection(
            (*first, *(Considered(name, "chosen", scores[name]) for name in ranked[:most])),
            tuple(Considered(name, "beyond the limit", scores[name]) for name in ranked[most:]),
            len(functions),
            texts,
        )


def _words(text: str) -> set[str]:
    return {word.casefold().strip("?!.,") for word in text.replace("-", " ").replace("_", " ").split()}

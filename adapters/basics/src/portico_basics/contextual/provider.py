"""The context provider that offers an agent, of many functions, the few that its conversation is about."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from portico import AgentTurn, Context, Function, FunctionPlugin, FunctionSpec, Message, Turn
from portico.errors import FunctionNotFound
from portico_basics.contextual.choosing import ContextualSelector, SelectionOptions
from portico_basics.contextual.lexical import Ranking, function_text

if TYPE_CHECKING:
    from portico.ports import EmbeddingGenerator, VectorStore


Offerable: TypeAlias = "Function | FunctionPlugin | Callable[..., Any]"
"""A function, a plugin of functions, or a callable to make a function of."""

_Some: TypeAlias = "Iterable[Offerable] | Awaitable[Iterable[Offerable]]"


@dataclass(frozen=True, slots=True)
class ContextualFunctionOptions:
    """How a `ContextualFunctionProvider` chooses.

    ``recent_messages`` is how many messages of earlier turns belong to the context, before all new ones; messages
    without words do not count, nor do results of calls. ``context_text`` makes of these messages the text that is
    looked for; it may be asynchronous. For the others see `SelectionOptions`. ``namespace`` is where the functions'
    vectors lie in the store. Raises ``ValueError`` for a number or a word that means nothing.
    """

    recent_messages: int = 2
    context_text: Callable[[Sequence[Message]], str | Awaitable[str]] | None = None
    function_text: Callable[[FunctionSpec], str] = function_text
    always: Sequence[str] = ()
    minimum_score: float | None = None
    ranking: Ranking = "fused"
    namespace: str = "functions"

    def __post_init__(self) -> None:
        if self.recent_messages < 0:
            raise ValueError(f"recent_messages is a number of messages, at least 0, not {self.recent_messages}")


class ContextualFunctionProvider:
    """Offer an agent the functions that its conversation is about: a ContextProvider.

    >>> import asyncio
    >>> from portico import Thread
    >>> def forecast(city: str) -> str:
    ...     '''Tell the weather of a city.'''
    >>> def send_mail(to: str, text: str) -> str:
    ...     '''Send a mail.'''
    >>> options = ContextualFunctionOptions(ranking="lexical")
    >>> provider = ContextualFunctionProvider([forecast, send_mail], max_functions=1, options=options)
    >>> question = Message.of("user", "What will the weather be in Oslo?")
    >>> context = asyncio.run(provider.before(AgentTurn("guide", Thread(), (), (question,))))
    >>> [function.name for function in context.functions]
    ['forecast']

    With a vector store and embeddings it goes by meaning too; any of each will do, and the store is kept in step with
    the functions before each choice. ``functions`` may be changed at any time, as a list; or give a callable, also an
    asynchronous one, that returns what there is: it is asked at every turn. A function that is gone is not offered any
    more. What was chosen, what was left out and why, and what changed in the store is the context's ``selection``.

    Raises ``FunctionNotFound`` at a turn for a name in ``always`` that no function has, with the nearest;
    ``StoreError`` that names the store; and what embedding raises.
    """

    def __init__(
        self,
        functions: Iterable[Offerable] | Callable[[], _Some],
        vector_store: VectorStore | None = None,
        embeddings: EmbeddingGenerator | None = None,
        *,
        max_functions: int = 8,
        options: ContextualFunctionOptions | None = None,
    ) -> None:
        self.options = options or ContextualFunctionOptions()
        self.functions: list[Offerable] | Callable[[], _Some]
        self.functions = functions if callable(functions) else _listed(functions)
        self._made: dict[int, tuple[object, Function]] = {}
        self._selector = ContextualSelector(
            vector_store,
            embeddings,
            namespace=self.options.namespace,
            options=SelectionOptions(
                limit=max_functions,
                always=self.options.always,
                minimum_score=self.options.minimum_score,
                ranking=self.options.ranking,
                function_text=self.options.function_text,
            ),
        )

    @property
    def max_functions(self) -> int:
        """How many functions are offered at most, besides those that always are."""
        return self._selector.limit

    async def before(self, turn: AgentTurn) -> Context:
        """Return the functions for this turn, those that always are offered first, then the best first."""
        functions = {function.full_name: function for function in await self._present()}
        specs = tuple(function.spec for function in functions.values())
        selection = await self._selector.select(specs, await self._texts(turn))
        if selection.absent:
            # Here the whole catalogue is known: what is not in it is spelled wrongly, or gone.
            raise FunctionNotFound(selection.absent[0], tuple(functions))
        return Context(functions=tuple(functions[name] for name in selection.names), selection=selection)

    async def after(self, turn: AgentTurn, outcome: Turn[Any] | BaseException) -> None:
        """Do nothing: the next turn's context has what was said."""

    async def _texts(self, turn: AgentTurn) -> tuple[str, ...]:
        earlier, new = (tuple(filter(_has_words, some)) for some in (turn.earlier, turn.new))
        recent = earlier[max(len(earlier) - self.options.recent_messages, 0) :]
        if self.options.context_text is None:
            return tuple(message.text for message in (*recent, *new))
        text = self.options.context_text((*recent, *new))
        if inspect.isawaitable(text):
            text = await text
        if not isinstance(text, str):
            raise TypeError(f"context_text returned {type(text).__name__}, not str")
        return (text,)

    async def _present(self) -> list[Function]:
        given = self.functions
        some: Any = given() if callable(given) else given
        if inspect.isawaitable(some):
            some = await some
        found: list[Function] = []
        made: dict[int, tuple[object, Function]] = {}
        for each in some:
            if isinstance(each, FunctionPlugin):
                found.extend(each)
            elif isinstance(each, Function):
                found.append(each)
            elif callable(each):
                # Made once, so that nothing is read anew; the callable is kept, so that no other gets its identity.
                made[id(each)] = self._made.get(id(each)) or (each, Function.of(each))
                found.append(made[id(each)][1])
            else:
                raise TypeError(f"{each!r:.80} is neither a function nor a plugin")
        self._made = made
        names: set[str] = set()
        for function in found:
            if function.full_name in names:
                raise ValueError(f"the provider has two functions called {function.full_name!r}")
            names.add(function.full_name)
        return found


def _listed(functions: Any) -> list[Offerable]:
    return [functions] if isinstance(functions, FunctionPlugin | Function) else list(functions)


def _has_words(message: Message) -> bool:
    return message.role in ("user", "assistant") and bool(message.text.strip())

"""The context provider that offers an agent the few functions that fit the conversation."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from portico import ChosenFunctions, Considered, Context, Function, FunctionPlugin, FunctionSpec, Selection
from portico_basics.contextual.choosing import ContextualSelector, SelectionOptions, find_names
from portico_basics.contextual.lexical import Ranking, function_text
from portico_basics.contextual.records import FunctionText

if TYPE_CHECKING:
    from portico import AgentTurn, Message, Turn
    from portico.ports import EmbeddingGenerator, VectorStore


Offerable: TypeAlias = "Function | FunctionPlugin | Callable[..., Any]"
"""A function, a function plugin, or a callable that becomes a function."""

_Some: TypeAlias = "Iterable[Offerable] | Awaitable[Iterable[Offerable]]"

_RESULTS, _SHOWN = 4, 300
"""How many results of calls are part of the context, and how many characters of each."""


@dataclass(frozen=True, slots=True)
class ContextualFunctionOptions:
    """How a `ContextualFunctionProvider` chooses.

    The context has all new messages and before them ``recent_messages`` of earlier turns; messages without words and
    results of calls do not count. ``context_text`` returns the text of these messages to search for, and may be
    asynchronous. With two parameters it gets the recent and the new messages apart, results of calls among them, and
    also those without words. ``namespace`` is the namespace of the functions' vectors in the store. With ``each_round``
    it chooses again after each round of calls: the beginnings of the last results are part of the context then, and
    functions that were called stay. For the others see `SelectionOptions`. Raises ``ValueError`` for a negative number.
    """

    recent_messages: int = 2
    context_text: Callable[..., str | Awaitable[str]] | None = None
    function_text: FunctionText = function_text
    always: Sequence[str] = ()
    minimum_score: float | None = None
    ranking: Ranking = "fused"
    namespace: str = "functions"
    each_round: bool = False

    def __post_init__(self) -> None:
        if self.recent_messages < 0:
            raise ValueError(f"recent_messages is a number of messages, at least 0, not {self.recent_messages}")


class ContextualFunctionProvider:
    """Offer an agent the functions that fit the conversation: a ContextProvider.

    >>> import asyncio
    >>> from portico import AgentTurn, Message, Thread
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

    With a vector store and embeddings it compares meanings too. ``functions`` is a list, which may be changed at any
    time, or a callable that returns the functions, also an asynchronous one, which is called at every turn. The
    ``selection`` of the context shows which functions were chosen and which were left out, with scores and reasons.
    ``tool_choice`` may name all of the functions: those that it includes are offered, and no others are chosen.

    A turn raises ``FunctionNotFound`` for a name in ``always`` that no function has, ``StoreError``, and what embedding
    raises.
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
        self.functions = functions if callable(functions) else list(functions)
        text = self.options.context_text
        needed = () if text is None else inspect.signature(text).parameters.values()
        self._apart = sum(each.default is each.empty for each in needed) > 1
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
        """How many functions are offered at most, besides those in ``always``."""
        return self._selector.limit

    async def before(self, turn: AgentTurn) -> Context:
        """Return the functions for this turn: those in ``always``, then the others, the best first."""
        chosen = await self._choose(turn)
        again = partial(self._choose, turn) if self.options.each_round and turn.tool_choice.include is None else None
        return Context(functions=chosen.functions, selection=chosen.selection, among=chosen.among, again=again)

    async def _choose(
        self, turn: AgentTurn, added: Sequence[Message] = (), calls: Sequence[tuple[str, str]] = ()
    ) -> ChosenFunctions:
        functions, choice = await self._present(), turn.tool_choice
        excluded, _ = find_names(choice.exclude, functions)
        specs = {name: function.spec for name, function in functions.items() if name not in excluded}
        if choice.include is None:
            called = tuple(dict.fromkeys(name for name, _ in calls if name in specs))
            texts = await self._texts(replace(turn, new=(*turn.new, *added)), [result for _, result in calls])
            limit = self.max_functions
            selection = await self._selector.select(tuple(specs.values()), texts, limit=limit + len(called))
            selection = selection.keep(called, limit)
        else:
            included, _ = find_names(choice.include, specs)
            selection = Selection(tuple(Considered(name, "always") for name in included), considered=len(specs))
        # The whole catalogue is known here: what is absent is excluded, or an error.
        tuple(FunctionSpec.find_names(selection.absent, functions))
        chosen = tuple(functions[name] for name in selection.names)
        return ChosenFunctions(chosen, tuple(functions.values()), selection=selection)

    async def after(self, turn: AgentTurn, outcome: Turn[Any] | BaseException) -> None:
        """Do nothing: the next turn has the messages of this one."""

    async def _texts(self, turn: AgentTurn, results: Sequence[str]) -> tuple[str, ...]:
        spoken = [place for place, message in enumerate(turn.earlier) if _has_words(message)]
        places = spoken[max(len(spoken) - self.options.recent_messages, 0) :]
        recent = turn.earlier[places[0] :] if places else ()
        make: Any = self.options.context_text
        messages = tuple(filter(_has_words, (*recent, *turn.new)))
        if make is None:
            return (*(message.text for message in messages), *(result[:_SHOWN] for result in results[-_RESULTS:]))
        text = make(recent, turn.new) if self._apart else make(messages)
        if inspect.isawaitable(text):
            text = await text
        if not isinstance(text, str):
            raise TypeError(f"context_text returned {type(text).__name__}, not str")
        return (text,)

    async def _present(self) -> dict[str, Function]:
        """Return the functions that there are now, by their names."""
        some: Any = self.functions() if callable(self.functions) else self.functions
        if inspect.isawaitable(some):
            some = await some
        found: dict[str, Function] = {}
        kept: dict[int, tuple[object, Function]] = {}
        for each in some:
            if isinstance(each, Function | FunctionPlugin):
                made: Iterable[Function] = each if isinstance(each, FunctionPlugin) else (each,)
            elif callable(each):
                # By identity, since it may have no hash or equal another one; it is kept, so that no other gets its id.
                kept[id(each)] = self._made.get(id(each)) or (each, Function.of(each))
                made = (kept[id(each)][1],)
            else:
                raise TypeError(f"{each!r:.80} is neither a function nor a plugin")
            for function in made:
                if function.full_name in found:
                    raise ValueError(f"the provider has two functions called {function.full_name!r}")
                found[function.full_name] = function
        self._made = kept
        return found


def _has_words(message: Message) -> bool:
    return message.role in ("user", "assistant") and bool(message.text.strip())

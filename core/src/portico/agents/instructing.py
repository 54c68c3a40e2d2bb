"""What an agent is told to be, at each turn: its own instructions and those of context providers."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from portico.agents.context import AgentTurn, Context
from portico.chat import Message
from portico.errors import TemplateError
from portico.ports.template_language import Template
from portico.prompts.prompt import Prompt

if TYPE_CHECKING:
    from portico.agents.agent import ChatAgent

__all__ = ["Instructions", "instructed", "is_template"]

Instructions: TypeAlias = str | Template | Callable[[AgentTurn], str | Awaitable[str]]
"""A text as it is, a compiled template that is rendered at each turn, or a function of the turn."""


async def instructed(
    agent: ChatAgent, turn: AgentTurn, contexts: Sequence[Context], arguments: Mapping[str, Any] | None
) -> tuple[Message, ...]:
    """Return the messages that come before the history: one of the system, where there are instructions.

    A template may write further messages, as examples of how to answer. Raises ``TypeError`` for arguments where there
    is no template, and what rendering does.
    """
    own = await _own(agent, turn, arguments)
    added = [context.instructions for context in contexts if context.instructions.strip()]
    if not added:
        return own
    if own and own[0].role == "system":
        return (Message.of("system", "\n\n".join([own[0].text, *added])), *own[1:])
    return (Message.of("system", "\n\n".join(added)), *own)


async def _own(agent: ChatAgent, turn: AgentTurn, arguments: Mapping[str, Any] | None) -> tuple[Message, ...]:
    given = agent.instructions
    if is_template(given):
        text = await agent.kernel.render_prompt(
            cast("Template", given), {**agent.arguments, **(arguments or {})}, name=agent.name
        )
    elif arguments:
        raise TypeError(
            f"arguments= are for a template, and the instructions of the agent {agent.name!r} are none: "
            "make one with Kernel.template"
        )
    elif isinstance(given, str):
        text = given
    else:
        made = cast("Callable[[AgentTurn], Any]", given)(turn)
        text = await made if inspect.isawaitable(made) else made
        if not isinstance(text, str):
            raise TypeError(f"the instructions of the agent {agent.name!r} came out as {text!r:.80}, not as a text")
    if not text.strip():
        return ()
    messages = _messages(agent.name, text) if isinstance(text, Prompt) else ()
    return messages if len(messages) > 1 else (Message.of("system", messages[0].text if messages else text),)


def _messages(name: str, prompt: Prompt) -> tuple[Message, ...]:
    try:
        return prompt.messages()
    except TemplateError as error:
        raise TemplateError(f"{name}, {error}", line=error.line, column=error.column) from error


def is_template(instructions: object) -> bool:
    """Tell whether instructions are a compiled template."""
    return not isinstance(instructions, str) and hasattr(instructions, "render")

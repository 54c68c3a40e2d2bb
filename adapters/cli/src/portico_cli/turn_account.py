"""What came of one turn of a conversation, gathered while it goes on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from portico.chat import Citation, ToolCall
from portico_cli.selections import selection_to_json

if TYPE_CHECKING:
    from portico.agents.replies import AgentReply
    from portico.selection.selection import Selection
    from portico.turns import ToolFinished

__all__ = ["TurnAccount", "account_to_json", "call_words"]

_LONGEST = 60


@dataclass(slots=True)
class TurnAccount:
    """A turn's answer, what it rests on, and what was called and offered for it."""

    reply: AgentReply[str] | None = None
    tools: list[ToolFinished] = field(default_factory=list)
    citations: tuple[Citation, ...] = ()
    warnings: list[str] = field(default_factory=list)

    @property
    def answer(self) -> str:
        """The words of the answer."""
        return self.reply.text if self.reply is not None else ""

    @property
    def selection(self) -> Selection | None:
        """How the functions were chosen that were offered, where they were."""
        return self.reply.selections[-1] if self.reply is not None and self.reply.selections else None


def account_to_json(account: TurnAccount) -> dict[str, Any]:
    """Return a turn as JSON values."""
    reply = account.reply
    assert reply is not None  # noqa: S101 - only a turn that ended well is told of
    return {
        "answer": reply.text,
        "citations": [
            {"number": each.number, "name": each.name, "link": each.link, "quote": each.quote}
            for each in account.citations
        ],
        "warnings": list(account.warnings),
        "tools": [
            {
                "name": each.call.name,
                "arguments": _parsed(each.call.arguments),
                "error" if each.result.error else "result": _parsed(each.result.content),
                "seconds": round(each.seconds, 3),
            }
            for each in account.tools
        ],
        "selection": selection_to_json(account.selection),
        "usage": {"input_tokens": reply.usage.input_tokens, "output_tokens": reply.usage.output_tokens},
        "service": reply.reply.service or None,
    }


def call_words(call: ToolCall) -> str:
    """Return a call in a line.

    >>> call_words(ToolCall("1", "docs-Search", '{"query": "ports", "count": 2}'))
    'docs-Search(query="ports", count=2)'
    """
    arguments = _parsed(call.arguments)
    if not isinstance(arguments, dict):
        return f"{call.name}({_cut(str(arguments))})"
    words = (f"{name}={_cut(json.dumps(value, ensure_ascii=False))}" for name, value in arguments.items())
    return f"{call.name}({', '.join(words)})"


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _parsed(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text

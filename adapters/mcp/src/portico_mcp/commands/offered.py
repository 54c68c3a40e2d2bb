"""What `portico mcp list` and `portico mcp approve` show of a server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from portico_cli.show.layout import Hanging
from portico_cli.show.output import safe_text

if TYPE_CHECKING:
    from portico import FunctionPlugin
    from portico_mcp._client.pins import Listing


@dataclass(frozen=True, slots=True)
class Offered:
    """What a server offers now, beside what was approved of it: its functions, those that are lost, and changes."""

    plugin: FunctionPlugin
    lost: tuple[str, ...]
    now: Listing
    approved: Listing | None

    @property
    def changes(self) -> list[str]:
        """The sentences on what is another now than what was approved; none where nothing was."""
        return [] if self.approved is None else list(self.approved.changes(self.now))

    @property
    def state(self) -> str:
        """In words, whether what the server offers was approved."""
        if self.approved is None:
            return "nothing is approved; what it says at its start is what counts"
        count = len(self.changes)
        return f"{count} change{'s' * (count > 1)} since it was approved" if count else "all is approved"

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        specs = [function.spec for function in self.plugin]
        return {
            "name": self.plugin.name,
            "approved": self.approved is not None and not self.changes,
            "changes": self.changes,
            "functions": [
                {
                    "name": spec.name,
                    "description": spec.description,
                    "parameters": dict(spec.parameters),
                    "returns": dict(spec.returns),
                    "effects": spec.effects,
                    "pin": next((tag.removeprefix("pin=") for tag in spec.tags if tag.startswith("pin=")), None),
                }
                for spec in specs
            ],
            "lost": list(self.lost),
        }

    def lines(self) -> Iterator[RenderableType]:
        """Yield it for people."""
        yield Text.assemble(safe_text(self.plugin.name, "bold"), safe_text(f"  {self.plugin.description}", "dim"))
        for function in self.plugin:
            names = [each.name if each.required else f"[{each.name}]" for each in function.parameters]
            effects = ("  effects", "yellow") if function.effects else ("  reads", "green")
            yield Hanging(
                Text.assemble(safe_text(function.name, "cyan"), safe_text(f"({', '.join(names)})", "dim"), effects),
                "  ",
            )
            yield Hanging(safe_text(" ".join(function.description.split())), "    ")
            if keys := function.returns.schema.get("properties"):
                yield Hanging(safe_text(f"gives {', '.join(keys)}", "dim"), "    ")
        for reason in self.lost:
            yield Hanging(safe_text(reason, "yellow"), "  lost: ", "yellow")
        for change in self.changes:
            yield Hanging(safe_text(change), "  ! ", "bold red")
        yield Text()
        yield safe_text(f"{len(self.plugin.functions)} functions; {self.state}.", "bold")

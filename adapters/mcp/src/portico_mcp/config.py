"""The settings of a function plugin whose functions are the tools of a server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from re import DOTALL, sub
from typing import Any

from attrs import Attribute, field, frozen, validators

from portico.plugins import Secret


@frozen
class MCPSettings:
    """What can be set for a function plugin that uses `mcp`. Either `command` or `url` is needed.

    >>> MCPSettings(command="mcp-server-time").trusted
    False

    Raises ``ValueError`` for none or both of them, and for a number out of its range.
    """

    command: str | None = field(
        default=None, metadata={"doc": "The program that is the server; it is started, and spoken to by its pipes."}
    )
    args: tuple[str, ...] = field(default=(), metadata={"doc": "The arguments of `command`."})
    env: Mapping[str, Secret] = field(
        factory=dict,
        metadata={
            "doc": "The environment variables of `command`. Of the application's own it gets those that programs need "
            "to start at all, such as `PATH` and `HOME`, and no others."
        },
    )
    folder: Path | None = field(
        default=None, metadata={"doc": "The working folder of `command`. Default: the application's own."}
    )
    url: str | None = field(default=None, metadata={"doc": "The URL of a server that runs already (Streamable HTTP)."})
    headers: Mapping[str, Secret] = field(
        factory=dict, metadata={"doc": "Headers for every request to `url`, such as `Authorization`."}
    )
    include: tuple[str, ...] = field(
        default=(),
        metadata={
            "doc": "What to take: tools, prompts, `list_resources`, `read_resource`. `*` stands for anything; none "
            "takes all."
        },
    )
    exclude: tuple[str, ...] = field(
        default=(), metadata={"doc": "Those to leave out, written as in `include`; they win over it."}
    )
    prefix: str = field(
        default="",
        validator=validators.matches_re(r"[0-9A-Za-z_]*"),
        metadata={"doc": "What the name of each function begins with."},
    )
    trusted: bool = field(
        default=False,
        metadata={
            "doc": "Whether to believe the server when it says that a tool only reads. Of a server that is not trusted "
            "every tool has effects."
        },
    )
    approvals: Path | None = field(
        default=None,
        metadata={
            "doc": "The folder of what `portico mcp approve` approved. Default: `portico/mcp` in the user's data."
        },
    )
    start_timeout: float = field(
        default=60.0,
        validator=[validators.gt(0), validators.le(3600)],
        metadata={"doc": "Seconds until the server has started and listed its tools."},
    )
    timeout: float = field(
        default=60.0,
        validator=[validators.gt(0), validators.le(86400)],
        metadata={"doc": "Seconds that one call may take."},
    )
    maximum_tools: int = field(
        default=1_000, validator=validators.ge(1), metadata={"doc": "Tools that the server may list at most."}
    )
    maximum_result_bytes: int = field(
        default=10_000_000,
        validator=validators.ge(10_000),
        metadata={"doc": "Bytes of one message of the server at most."},
    )

    @property
    def place(self) -> str:
        """The program, or the URL without what may be a key: user, password and query."""
        if self.url is None:
            return self.command or ""
        return sub("(?<=//)[^/?#]*@|[?#].*", "", self.url, flags=DOTALL)

    @headers.validator
    def _sendable(self, attribute: Attribute[Any], value: Mapping[str, Secret]) -> None:
        for name, secret in value.items():
            if not name.isascii() or not secret.reveal().isascii() or not f"{name}{secret.reveal()}".isprintable():
                raise ValueError(f"the header {name!r} has a character that no header may have: give printable ASCII")

    @url.validator
    def _one_of_both(self, attribute: Attribute[str | None], value: str | None) -> None:
        if (self.command is None) == (value is None):
            raise ValueError("it needs `command` or `url`, and not both")

"""What a reader finds on a page of the documentation, and does with it, in the order of the page.

A block right below a line that ends in a file's name and a colon (`portico.toml`:) is saved under that name. Lines of a
block of `console` are entered into a shell. A page that says `python` or `python -m asyncio` has its other blocks of
Python pasted there, as a terminal does it: line by line. A block of `text` is what the block before it has printed; `…`
in it stands for anything. A block of `sh` is only shown: it is about files, services or keys of the reader.
"""

from __future__ import annotations

import ast
import re
from codeop import CommandCompiler
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

__all__ = ["Block", "agrees", "blocks_of", "commands_of", "pasted_into", "statements_of", "write"]

_FENCED = re.compile(
    r"^```(?P<language>\w*)\n(?P<text>.*?)^```\n(?:\n```text\n(?P<printed>.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
_NAMED = re.compile(r"`(?P<file>[\w./-]+\.\w+)`:\n\n?\Z")
_PASTED = re.compile(r"^Paste the Python blocks[^\n]* into `(python(?: -m asyncio)?)`", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, what it says, the file that it is, and what is shown as printed by it."""

    start: int
    end: int
    language: str
    text: str
    file: str
    printed: str | None


def blocks_of(page: str) -> Iterator[Block]:
    """Find the blocks of a page, in order."""
    for found in _FENCED.finditer(page):
        named = _NAMED.search(page, 0, found.start())
        printed = None if found["printed"] is None else found["printed"].rstrip("\n")
        yield Block(
            found.start(), found.end(), found["language"], found["text"], named["file"] if named else "", printed
        )


def pasted_into(page: str) -> str:
    """Return the interpreter that a page has its blocks pasted into; "" where they are programs."""
    found = _PASTED.search(page)
    return found[1] if found else ""


def commands_of(block: Block) -> list[str]:
    """Return the lines that a reader enters; where some have a prompt, the others are what they print."""
    lines = block.text.replace("\\\n", "").splitlines()
    entered = [line[2:] for line in lines if line.startswith("$ ")] or lines
    return [line for line in entered if line and not line.startswith("#")]


def statements_of(text: str, name: str = "<stdin>", first_line: int = 0) -> Iterator[CodeType]:
    """Compile what is pasted into an interpreter as it does: a line at a time, each statement when it is complete."""
    compiler = CommandCompiler()
    compiler.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    waiting = ""
    for number, line in enumerate([*text.splitlines(), ""]):
        waiting += f"{line}\n"
        code = compiler("\n" * (first_line + number - waiting.count("\n") + 1) + waiting.removesuffix("\n"), name)
        if code is not None:
            yield code
            waiting = ""


def write(block: Block, folder: Path) -> None:
    """Save a block that is a file."""
    path = folder / block.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text, "utf-8")


def agrees(printed: str, shown: str) -> bool:
    """Say whether what was printed is what a page shows."""
    pattern = ".*?".join(map(re.escape, shown.split("…")))
    return re.fullmatch(pattern, printed.rstrip("\n"), re.DOTALL) is not None

"""`portico new`: make a package to begin with: a template, copied with another name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

import click
from rich.console import RenderableType

import portico_host
from portico.errors import StoreError
from portico.ports import PORTS
from portico_cli.failures import Misused
from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.show.output import plain, safe_text, show, write_json
from portico_host.packages import SHIPPED, distribution_for, port_named
from portico_host.tree import NONE

# Characters of a registered name; with longer ones lines of the templates grow too long.
LONGEST = 30
_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_HERE = Path(__file__).parents[1]
_ACME = re.compile("portico_acme|ACME|Acme|acme")
_LEFT_BY_TOOLS = {"__pycache__", "build", "dist"}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of package: its port, the endings of its main class and its distribution, and a command to try it."""

    word: str
    port: str
    noun: str
    attempt: str
    suffix: str = ""


_SEARCH = 'portico ask "How many pounds does the big anvil weigh?" --source {name}'
_PLAN = 'portico ask "Which colour is the door?" --docs docs --planner {name}'
_CHAT = 'portico ask "Which colour is the door?" --docs docs --chat {name}'
_FUNCTIONS = "PORTICO_FUNCTIONS__MINE__USE={name} portico functions"

KINDS: Mapping[str, Kind] = {
    kind.word: kind
    for kind in (
        Kind("connector", "TextSearch", "Search", _SEARCH),
        Kind("planner", "Planner", "Planner", _PLAN, "-planner"),
        Kind("adapter", "ChatService", "Chat", _CHAT),
        Kind("plugin", "FunctionSource", "Functions", _FUNCTIONS),
    )
}


@click.command(name="new")
@click.argument("kind", metavar="KIND", type=click.Choice(list(KINDS)))
@click.argument("name", metavar="NAME")
@click.option(
    "--into",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Make the package in this folder, new or empty, instead of ./portico-NAME.",
)
@json_option
@common_options
@pass_invocation
def command(invocation: Invocation, kind: str, name: str, into: Path | None) -> None:
    """Make your own package that works, with its tests.

    KIND is connector (a text search), planner, adapter (a chat service) or plugin (functions). NAME is what it is
    called in portico.toml; its distribution is portico-NAME, or portico-NAME-planner.
    """
    package = package_name(name, KINDS[kind])
    refuse_taken(package)
    folder = into or Path(package.distribution)
    files = fill_template(package)
    make_folder(folder, files)
    made: dict[str, Any] = {
        "kind": kind,
        "name": package.registered,
        "distribution": package.distribution,
        "module": package.module,
        "folder": str(folder.absolute()),
        "files": [path.as_posix() for path in files],
        "commands": [f"cd {shlex.quote(str(folder))}", "pip install -e . portico-testkit", "pytest"],
        "attempt": package.kind.attempt.format(name=package.registered),
    }
    if invocation.json:
        write_json(made)
    else:
        show(*_lines(made))


def _lines(made: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield safe_text(f"Made {made['distribution']} in {made['folder']}:", "bold")
    for path in made["files"]:
        yield safe_text(f"  {path}", "dim")
    yield safe_text("\nNext:")
    for line in made["commands"]:
        yield safe_text(f"  {line}", "cyan")
    yield safe_text("\nThen try it:")
    yield safe_text(f"  {made['attempt']}", "cyan")


@dataclass(frozen=True, slots=True)
class PackageName:
    """A registered name and the names that follow from it: to install, to import, and of the classes."""

    registered: str
    kind: Kind

    @property
    def distribution(self) -> str:
        """The name to install."""
        return f"portico-{self.registered}{self.kind.suffix}"

    @property
    def module(self) -> str:
        """The name to import."""
        return self.distribution.replace("-", "_")

    @property
    def class_prefix(self) -> str:
        """The beginning of the names of its classes. The noun of the kind ends them."""
        words = self.registered.split("-")
        if len(words) > 1 and words[-1] == self.kind.noun.lower():
            words.pop()
        prefix = "".join(f"{word[0].upper()}{word[1:]}" for word in words)
        # pytest would take a class that begins with "Test" for tests.
        return f"TEST{prefix.removeprefix('Test')}" if prefix.startswith("Test") else prefix


def package_name(given: str, kind: Kind) -> PackageName:
    """Return the names for a name as people write it: of the distribution, of the module, or the bare one.

    Case, hyphens, underscores, dots and spaces make no difference. Raises `Misused` for a name that a
    distribution or a module cannot have.
    """
    folded = re.sub(r"[-_. ]+", "-", given).lower()
    name = folded.removeprefix("portico-").removesuffix(kind.suffix)
    if not _NAME.fullmatch(name) or len(name) > LONGEST:
        raise Misused(
            f"{plain(given)[:80]!r} cannot be the name of a package. A name has English letters, digits and single "
            f"hyphens, begins with a letter, for example my-search, and has {LONGEST} characters at most."
        )
    return PackageName(name, kind)


def refuse_taken(name: PackageName) -> None:
    """Raise `Misused` if a port, a hook, an installed module or one of our packages has the name."""
    registered = name.registered
    for port in PORTS:
        words = {port.table, port.key, port.name.lower(), port.noun.replace(" ", "-").lower(), NONE}
        if name.module == port.hook or registered in words:
            raise Misused(f"Portico uses {registered!r} itself, in portico.toml or for a hook. Choose another name.")
    # A folder without an `__init__.py`, as the working directory may have one, is no package.
    if (there := find_spec(name.module)) and there.origin:
        raise Misused(f"A module {name.module} is installed. Choose another name.")
    # One of ours that is not installed here: the two could never be installed together.
    ours = {name.distribution, distribution_for(port_named(name.kind.port), registered)} & SHIPPED.keys()
    if ours:
        raise Misused(f"{min(ours)} is a package of Portico. Choose another name.")
    for offer in portico_host.discover().offers(name.kind.port):
        if offer.name.replace("_", "-").lower() == registered:
            raise Misused(f"{offer.distribution} registers {offer.name!r}. Choose another name.")


def template_folder(kind: Kind) -> Path:
    """Return the folder of a template: in the installed package, or in the checkout."""
    installed = _HERE / "template"
    return (installed if installed.is_dir() else _HERE.parents[3] / "docs" / "template") / kind.word


def fill_template(name: PackageName) -> dict[PurePosixPath, str]:
    """Return the files of a new package by their paths: those of the template with another name."""
    folder = template_folder(name.kind)
    # "portico-acme" and "portico-acme-planner" become right with the registered name in them.
    word = name.registered.replace("-", "_")
    forms = {"portico_acme": f"portico_{word}", "ACME": word.upper(), "Acme": name.class_prefix}

    def rename(text: str) -> str:
        return _ACME.sub(lambda match: forms.get(match[0], name.registered), text)

    return {
        PurePosixPath(rename(path.relative_to(folder).as_posix())): rename(path.read_text("utf-8"))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and _belongs(path.relative_to(folder))
    }


def _belongs(path: Path) -> bool:
    """Tell whether a file is part of a template and was not left there by a tool."""
    left = any(part.startswith(".") or part in _LEFT_BY_TOOLS for part in path.parts[:-1])
    return not left and path.suffix != ".pyc"


def make_folder(folder: Path, files: Mapping[PurePosixPath, str]) -> None:
    """Write the files into a new or empty folder.

    Raises `Misused` if the folder holds something or is a file, ``StoreError`` if it cannot be written.
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise Misused(f"{folder} is there already, and is not an empty folder. Give another one with --into.")
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, "utf-8", newline="\n")
    except OSError as error:
        why = error.strerror or str(error)
        raise StoreError(f"{folder} cannot be written: {why}. Give another folder with --into.") from error

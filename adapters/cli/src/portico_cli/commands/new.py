"""`portico new`: a package to begin with."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from portico_cli.invocation import Invocation, common_options, json_option, pass_invocation
from portico_cli.new_package import KINDS
from portico_cli.show.output import safe_text, show, write_json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from portico_cli.new_package import PackageName


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
    from portico_cli.new_package import author_of_git, filled, make_folder, package_name, refuse_taken

    package = package_name(name, KINDS[kind])
    refuse_taken(package)
    folder = into or Path(package.distribution)
    files = filled(package, author_of_git())
    make_folder(folder, files)
    paths = [path.as_posix() for path in files]
    if invocation.json:
        write_json(_as_json(package, folder, paths))
    else:
        show(*_lines(package, folder, paths))


def _as_json(package: PackageName, folder: Path, paths: list[str]) -> dict[str, Any]:
    return {
        "kind": package.kind.word,
        "name": package.registered,
        "distribution": package.distribution,
        "module": package.module,
        "folder": str(folder.absolute()),
        "files": paths,
        "commands": _commands(folder),
        "attempt": _attempt(package),
    }


def _lines(package: PackageName, folder: Path, paths: list[str]) -> Iterator[RenderableType]:
    from rich.text import Text

    kind = f"{package.kind.article} {package.kind.word}"
    yield Text.assemble("Made ", safe_text(package.distribution, "bold"), safe_text(f", {kind}, in {folder}:"))
    for path in paths:
        yield safe_text(f"  {path}", "dim")
    yield Text()
    yield Text("Next:")
    for line in _commands(folder):
        yield safe_text(f"  {line}", "cyan")
    yield Text()
    yield Text.assemble("Then try it: ", safe_text(_attempt(package), "cyan"))


def _commands(folder: Path) -> list[str]:
    """Return the three commands that come next."""
    return [f"cd {shlex.quote(str(folder))}", "pip install -e . portico-testkit", "pytest"]


def _attempt(package: PackageName) -> str:
    return package.kind.attempt.format(name=package.registered)

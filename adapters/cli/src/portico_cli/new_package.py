"""Make a new package: a template, copied with another name."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.errors import HeaderParseError, MessageDefect
from email.headerregistry import Address
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

import portico_host
from portico.errors import StoreError
from portico.ports import PORTS
from portico_cli.failures import Misused
from portico_cli.show.output import plain
from portico_host.configuration import NONE
from portico_host.host_tables import LoopBudget
from portico_host.packages import SHIPPED, distribution_for, port_named

# Characters of a registered name; with longer ones lines of the templates grow too long.
LONGEST = 30
_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_HERE = Path(__file__)
_ACME = re.compile("portico_acme|ACME|Acme|acme")
_AUTHORS = re.compile(r"^authors = .*\n", re.MULTILINE)
_LEFT_BY_TOOLS = {"__pycache__", "build", "dist"}
_GIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of package: its port, the endings of its names, and a command to try it.

    ``noun`` ends the name of the main class, ``suffix`` the name of the distribution. ``attempt`` has ``{name}`` for
    the registered name.
    """

    word: str
    port: str
    noun: str
    attempt: str
    suffix: str = ""

    @property
    def article(self) -> str:
        """The article before the word."""
        return "an" if self.word[0] in "aeiou" else "a"


_SEARCH = 'portico ask "How many pounds does the big anvil weigh?" --source {name}'
_PLAN = 'portico ask "What is this about?" --docs . --planner {name}'
_CHAT = 'portico ask "What is this about?" --docs . --chat {name}'
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


@dataclass(frozen=True, slots=True)
class PackageName:
    """A registered name and the names that follow from it.

    >>> name = PackageName("my-search", KINDS["connector"])
    >>> name.distribution, name.module, name.class_prefix
    ('portico-my-search', 'portico_my_search', 'My')
    >>> PackageName("acme", KINDS["planner"]).distribution
    'portico-acme-planner'
    >>> PackageName("testbed", KINDS["connector"]).class_prefix
    'TESTbed'
    """

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
        """The beginning of the names of its classes, without the noun at their end.

        It is never "Test": pytest takes such a class for tests.
        """
        words = self.registered.split("-")
        if len(words) > 1 and words[-1] == self.kind.noun.lower():
            words.pop()
        prefix = "".join(f"{word[0].upper()}{word[1:]}" for word in words)
        return f"TEST{prefix.removeprefix('Test')}" if prefix.startswith("Test") else prefix


def package_name(given: str, kind: Kind) -> PackageName:
    """Return the names for a name as people write it: of the distribution, of the module, or the bare one.

    >>> package_name("Portico_My.Search", KINDS["connector"]).registered
    'my-search'
    >>> package_name("portico-acme-planner", KINDS["planner"]).registered
    'acme'

    Case, hyphens, underscores and dots make no difference (PyPA's normalisation). Raises `Misused` for a name that a
    distribution or a module cannot have.
    """
    folded = re.sub(r"[-_.]+", "-", given).lower()
    name = folded.removeprefix("portico-").removesuffix(kind.suffix)
    if not _NAME.fullmatch(name):
        # The nearest to a letter with a mark is the letter without.
        marked = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        fitting = re.sub(r"[^a-z0-9]+", "-", marked).strip("-")[:LONGEST].rstrip("-")
        advice = f" Perhaps {fitting}?" if _NAME.fullmatch(fitting) else ""
        raise Misused(
            f"{plain(given)[:80]!r} cannot be the name of a package. A name has English letters, digits and single "
            f"hyphens, and begins with a letter, for example my-search.{advice}"
        )
    if len(name) > LONGEST:
        raise Misused(f"The name {name[:LONGEST]!r}… has {len(name)} characters; {LONGEST} are the most.")
    return PackageName(name, kind)


def refuse_taken(name: PackageName) -> None:
    """Raise `Misused` if a port, a hook, an installed package, one of ours or a registration has the name."""
    taken = next(_taken(name), None)
    if taken:
        raise Misused(f"{taken} Choose another name.")


def _taken(name: PackageName) -> Iterator[str]:
    registered = name.registered
    for port in PORTS:
        if name.module == port.hook:
            yield f"The hook function of the port {port.name} is called {port.hook}."
        if registered in {port.table, port.key, port.name.lower(), port.noun.replace(" ", "-").lower()}:
            yield f"{registered!r} is a word for the port {port.name} in portico.toml and in messages."
    if registered == NONE:
        yield f'`use = "{NONE}"` in portico.toml switches a port off.'
    if name.kind.port == "Planner" and registered in {*LoopBudget.__annotations__}:
        yield f"{registered!r} is a key of the table [planner] in portico.toml."
    with suppress(PackageNotFoundError):
        yield f"{name.distribution} {version(name.distribution)} is installed."
    try:
        there = find_spec(name.module)
    except ValueError:
        yield f"A module {name.module} is there already."
    else:
        # A folder without an `__init__.py`, as the working directory may have one, is no package.
        if there and there.origin:
            yield f"A module {name.module} is installed."
    port = port_named(name.kind.port)
    # One of ours that is not installed here: the two could never be installed together.
    for ours in sorted({name.distribution, distribution_for(port, registered)} & SHIPPED.keys()):
        yield f"{ours} is a package of Portico: `pip install {ours}`."
    for offer in portico_host.discover().offers(port.name):
        if offer.name.replace("_", "-").lower() == registered:
            yield f"{offer.distribution} registers the {port.noun} {offer.name!r}."


@dataclass(frozen=True, slots=True)
class Author:
    """A name and an address; at least one of them is not empty.

    >>> Author("Ada Lovelace", "ada@example.org").toml
    '{ name = "Ada Lovelace", email = "ada@example.org" }'
    """

    name: str
    email: str

    @property
    def toml(self) -> str:
        """The author as an inline table of `pyproject.toml`."""
        # A JSON string is a TOML string too, but for the one control character that JSON leaves as it is.
        texts = [
            f"{key} = {json.dumps(text, ensure_ascii=False)}".replace("\x7f", "\\u007f")
            for key, text in (("name", self.name), ("email", self.email))
            if text
        ]
        return f"{{ {', '.join(texts)} }}"


def author_of_git() -> Author | None:
    """Return the author that git knows for this folder, or None."""
    git = shutil.which("git")
    if git is None:
        return None
    name, email = (_configured([git, "config", "--get", f"user.{key}"]) for key in ("name", "email"))
    # A line of metadata has no line break.
    name = " ".join("".join(letter if letter.isprintable() else " " for letter in name).split())
    try:
        # Build backends read it with this class, and fail on any other.
        email = email if "@" in email and Address(addr_spec=email).addr_spec == email else ""
    except (ValueError, IndexError, HeaderParseError, MessageDefect):
        email = ""
    return Author(name, email) if name or email else None


def _configured(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the words are ours
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_GIT_SECONDS, check=False, cwd=Path.cwd()
        )
        return done.stdout.decode("utf-8").strip() if done.returncode == 0 else ""
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""


def template_folder(kind: Kind) -> Path:
    """Return the folder of a template: in the installed package, or in the checkout.

    Raises ``StoreError`` if it is in neither.
    """
    places = [_HERE.parent / "template", *(folder / "docs" / "template" for folder in _HERE.parents[4:5])]
    for place in places:
        if (place / kind.word / "pyproject.toml").is_file():
            return place / kind.word
    raise StoreError(
        f"The template for {kind.article} {kind.word} is missing from {places[0]}. "
        "Run `pip install --force-reinstall --no-deps portico`."
    )


def filled(name: PackageName, author: Author | None) -> dict[PurePosixPath, str]:
    """Return the files of a new package by their paths: those of the template with another name.

    Raises ``StoreError`` if the template cannot be read.
    """
    folder = template_folder(name.kind)
    # "portico-acme" and "portico-acme-planner" become right with the registered name in them.
    word = name.registered.replace("-", "_")
    forms = {"portico_acme": f"portico_{word}", "ACME": word.upper(), "Acme": name.class_prefix}

    def renamed(text: str) -> str:
        return _ACME.sub(lambda match: forms.get(match[0], name.registered), text)

    try:
        files = {
            PurePosixPath(renamed(path.relative_to(folder).as_posix())): renamed(path.read_text("utf-8"))
            for path in _files(folder)
        }
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"The template in {folder} cannot be read: {error}") from error
    project = PurePosixPath("pyproject.toml")
    files[project] = _AUTHORS.sub(lambda _: f"authors = [{author.toml}]\n" if author else "", files[project])
    return files


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of a template, without what tools leave there."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if not path.name.startswith(".") and path.name not in _LEFT_BY_TOOLS:
                yield from _files(path)
        elif path.suffix != ".pyc":
            yield path


def make_folder(folder: Path, files: Mapping[PurePosixPath, str]) -> None:
    """Write the files into a new or empty folder: all of them, or none.

    They are written elsewhere and put in place when all are there. Raises `Misused` if the folder holds something or
    is none, ``StoreError`` if it cannot be written.
    """
    there = os.path.lexists(folder)
    # Beside a folder that is there may be another file system, or another person's folder.
    unfinished = (folder if there else folder.parent) / f".portico-new-{secrets.token_hex(4)}"
    absent = [each for each in folder.parents if not each.exists()]
    moved: list[Path] = []
    try:
        if there:
            _refuse_filled(folder)
        for path, text in files.items():
            place = unfinished / path
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
        if not there:
            unfinished.rename(folder)
            return
        _refuse_filled(folder, but=unfinished.name)
        # What was moved before an error is in the list too.
        moved.extend(path.rename(folder / path.name) for path in list(unfinished.iterdir()))
        unfinished.rmdir()
    except BaseException as error:
        for each in moved:
            each.rename(unfinished / each.name)
        shutil.rmtree(unfinished, ignore_errors=True)
        for parent in absent:
            with suppress(OSError):  # another process put something there meanwhile
                parent.rmdir()
        if isinstance(error, OSError):
            why = error.strerror or str(error)
            raise StoreError(f"{folder} cannot be written: {why}. Give another folder with --into.") from error
        raise


def _refuse_filled(folder: Path, *, but: str = "") -> None:
    if not folder.is_dir():
        raise Misused(f"{folder} is there already, and is no folder. Give another one with --into.")
    first = next((entry.name for entry in folder.iterdir() if entry.name != but), None)
    if first is not None:
        raise Misused(f"{folder} is there already, and not empty: it holds {first}. Give another one with --into.")

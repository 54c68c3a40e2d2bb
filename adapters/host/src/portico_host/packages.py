"""What is installed: packages, what each offers, what is wrong with it, and how one is chosen."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from portico.errors import PluginBroken, PluginConflict, PluginNotInstalled, nearest
from portico.plugins import Registration
from portico.ports import PORTS, PortInfo
from portico_host.problems import Problem

State: TypeAlias = Literal["ok", "broken", "conflict", "incompatible", "empty", "disabled"]

_LONGEST = 300
SHIPPED: dict[str, str] = {
    "portico-ai": "",
    "portico-anthropic": "",
    "portico-basics": "answers attrs cached contextual extractive folder fused jsonschema local msgspec plans prompts "
    "pydantic recorded retrieval sqlite vectors",
    "portico-bing": "",
    "portico-brave": "",
    "portico-core": "",
    "portico-dbos": "",
    "portico-documents": "",
    "portico-eval": "",
    "portico-faiss": "",
    "portico-function-calling-planner": "",
    "portico-gemini": "",
    "portico-google": "",
    "portico-host": "",
    "portico-llamacpp": "",
    "portico-mcp": "",
    "portico-mediawiki": "",
    "portico-milvus": "",
    "portico-openai": "",
    "portico-openapi": "",
    "portico-opentelemetry": "",
    "portico-postgres": "",
    "portico-searxng": "",
    "portico-sequential-planner": "",
    "portico-serve": "",
    "portico-stepwise-planner": "",
    "portico-structured-planner": "",
    "portico-tavily": "",
    "portico-templates": "handlebars jinja2",
    "portico-testkit": "",
    "portico-web": "full-pages httpx web-pages",
    "portico-wire": "",
    "portico-wordllama": "",
}
"""Portico's distributions, whose names no other package can have, with what each registers besides its own name."""


def fold(name: str) -> str:
    """Normalise a distribution's name as the packaging specification has it."""
    return re.sub(r"[-_.]+", "-", name).casefold()


def port_named(name: str) -> PortInfo:
    """Return what the table of ports says of one; ``ValueError`` when there is no such port."""
    for info in PORTS:
        if info.name == name:
            return info
    raise ValueError(f"there is no port {name!r}; the ports are {', '.join(info.name for info in PORTS)}")


def title(info: PortInfo) -> str:
    """Return what a port's services are called, as a sentence begins."""
    return info.noun[0].upper() + info.noun[1:]


def distribution_for(info: PortInfo, name: str) -> str:
    """Return the name that a distribution registering ``name`` has by convention, or ours that has another."""
    for shipped, names in SHIPPED.items():
        if name in names.split():
            return shipped
    name = name.replace("_", "-")
    return f"portico-{name}-planner" if info.name == "Planner" else f"portico-{name}"


def mend_of(owner: str, package: str) -> str:
    """Return what mends a failure of the distribution ``owner``; ``package`` is the name of its entry point.

    An upgrade also installs requirements that are missing.
    """
    return f"Run `pip install --upgrade {owner}`, `pip uninstall {owner}`, or set PORTICO_DISABLE={package}."


def mend_of_conflict(*owners: str) -> str:
    """Return what helps where several distributions register one name."""
    return f"Run {' or '.join(f'`pip uninstall {owner}`' for owner in owners)}."


def sentence_of(error: BaseException) -> str:
    """Return the type and the text of what a package raised, shortened, as the end of a sentence."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - the error is a foreign package's, too
        text = ""
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    shown = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return shown if shown.endswith((".", "!", "?")) else f"{shown}."


@dataclass(frozen=True, slots=True)
class Offer:
    """One registration with where it came from."""

    port: PortInfo
    registration: Registration
    package: str
    distribution: str

    @property
    def name(self) -> str:
        """The registered name."""
        return self.registration.name

    @property
    def compatible(self) -> bool:
        """Whether it was built for the port's major version that is installed."""
        return self.registration.port_version == self.port.version

    @property
    def incompatibility(self) -> Problem | None:
        """What is wrong where it was built for another major version of the port, and which side to upgrade."""
        port, built_for = self.port, self.registration.port_version
        if self.compatible:
            return None
        older, upgrade = ("package", self.distribution) if built_for < port.version else ("core", "portico-core")
        return Problem(
            f"{title(port)} {self.name!r} of {self.distribution} was built for version {built_for} of the port "
            f"{port.name}; the portico-core that is installed has version {port.version}.",
            f"The {older} is the older side: run `pip install --upgrade {upgrade}`.",
            subject=self.distribution,
        )


@dataclass(frozen=True, slots=True)
class Package:
    """An installed plugin package: its entry-point name, its distribution, and how it fared.

    ``state`` is the worst that is true of it: "broken" (its import or a hook raised, or it offers something
    malformed), "conflict" (another distribution registered the same name), "incompatible" (built for another
    major version of a port), "empty" (it registers nothing and has no command), "disabled" (not imported at all)
    or "ok". What works of it can be used in any state. ``problems`` are what is wrong, or why it is disabled.
    """

    name: str
    distribution: str
    version: str
    state: State = "ok"
    problems: tuple[Problem, ...] = ()
    offers: tuple[Offer, ...] = ()

    @property
    def problem(self) -> str | None:
        """All problems as one text; None when there is none."""
        return " ".join(each.cause for each in self.problems) or None

    @property
    def mend(self) -> str | None:
        """What mends them as one text, each once; None when nothing does or need be mended."""
        return " ".join(dict.fromkeys(each.mend for each in self.problems if each.mend)) or None

    @property
    def error(self) -> BaseException | None:
        """The first exception that it raised."""
        return next((each.error for each in self.problems if each.error is not None), None)


@dataclass(frozen=True, slots=True)
class Plugins:
    """Every package found. ``unmatched`` are names that were to be disabled, or alone used, and are not installed."""

    packages: tuple[Package, ...]
    unmatched: tuple[str, ...] = ()

    @property
    def problems(self) -> list[Problem]:
        """What is wrong with the packages, chosen or not."""
        found = [each for package in self.packages if package.state != "disabled" for each in package.problems]
        cause = "It is named in `disable`, `only` or PORTICO_DISABLE and is not installed."
        for name in self.unmatched:
            mend = f"Remove {name!r} there, or correct its spelling."
            found.append(Problem(cause, mend, subject=name, severity="warning"))
        return found

    def offers(self, port: str) -> tuple[Offer, ...]:
        """Return what is registered for a port ("TextSearch"), by name; equal names follow each other."""
        found = (offer for package in self.packages for offer in package.offers if offer.port.name == port)
        return tuple(sorted(found, key=lambda offer: (offer.name, offer.distribution)))

    def default_of(self, info: PortInfo) -> str | None:
        """Return what a port is filled with where nothing is configured; None for a spare one that is not installed."""
        return None if info.spare and info.default not in self.names(info.name) else info.default

    def names(self, port: str) -> tuple[str, ...]:
        """Return the registered names of a port, sorted, each once."""
        return tuple(dict.fromkeys(offer.name for offer in self.offers(port)))

    def offer(self, port: str, name: str) -> Offer:
        """Return what is registered under ``name``.

        Raises ``PluginConflict`` naming both distributions, ``PluginBroken`` with the
        package's own error as cause, or ``PluginNotInstalled`` with what to install.
        """
        info = port_named(port)
        found = [offer for offer in self.offers(port) if offer.name == name]
        if len(found) > 1:
            owners = [offer.distribution for offer in found]
            sentence = f"{title(info)} {name!r} is registered by {' and '.join(owners)}."
            raise PluginConflict(Problem(sentence, mend_of_conflict(*owners)))
        if not found:
            self._refuse(info, name)
        if (incompatibility := found[0].incompatibility) is not None:
            raise PluginBroken(incompatibility)
        return found[0]

    def _refuse(self, info: PortInfo, name: str) -> None:
        wanted = distribution_for(info, name)
        relatives = {fold(name), fold(wanted), fold(wanted.removeprefix("portico-"))}
        for package in self.packages:
            whose = f"{title(info)} {name!r} cannot be used: its package {package.distribution} is {package.state}."
            if not {fold(package.name), fold(package.distribution)} & relatives:
                continue
            if package.state == "disabled":
                raise PluginNotInstalled(Problem(f"{whose} {package.problem}", package.mend or ""))
            if package.state in ("broken", "empty"):
                raise PluginBroken(Problem(f"{whose} {package.problem}", package.mend or "")) from package.error
        installed = f"Installed: {', '.join(self.names(info.name)) or 'none'}."
        close = nearest(name, self.names(info.name), count=1)
        meant = [f"Did you mean {close[0]}?"] if close else []
        if wanted in SHIPPED:
            meant.append(f"{'Otherwise run' if close else 'Run'} `pip install {wanted}`.")
        elif not close:
            # A guessed name may belong to anyone at the index, and would be installed unread.
            meant.append("Choose another, or install the package that registers it.")
        raise PluginNotInstalled(Problem(f"{title(info)} {name!r} is not installed. {installed}", " ".join(meant)))

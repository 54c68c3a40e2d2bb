"""Find the installed plugin packages and what each registers, one at a time, so that none can stop another."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from importlib.metadata import Distribution, EntryPoint, distributions
from typing import Literal, TypeAlias

from portico.errors import PluginBroken, PluginConflict, PluginIncompatible, PluginNotInstalled, nearest
from portico.ports import PORTS, PortInfo
from portico.registration import Registration
from portico_host.hooks import Hook, hooks_of

__all__ = [
    "COMMANDS",
    "Offer",
    "Package",
    "Plugins",
    "State",
    "disabled_by_environment",
    "discover",
    "distribution_for",
    "entry_points_of",
    "names_of",
    "port_named",
]

GROUP = "portico"
COMMANDS = "portico.commands"
# Distributions of ours that register more than one name, or another than their own.
_ELSEWHERE = {
    ("EmbeddingGenerator", "cached"): "portico-cached-embeddings",
    ("FunctionSource", "plans"): "portico-plan-folder",
    ("PlanStore", "folder"): "portico-plan-folder",
    ("Runner", "local"): "portico-local-runner",
    ("TextSearch", "full-pages"): "portico-web-pages",
    **{("TypeCodec", name): "portico-type-codecs" for name in ("attrs", "msgspec", "pydantic")},
}
State: TypeAlias = Literal["ok", "broken", "conflict", "incompatible", "disabled"]


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
        """Whether it was written for the port's major version that is installed."""
        return self.registration.port_version == self.port.version


@dataclass(frozen=True, slots=True)
class Package:
    """An installed plugin package: its entry-point name, its distribution, and how it fared.

    ``state`` is the worst that is true of it: "broken" (its import or a hook raised, or it offers something
    malformed), "conflict" (another distribution registered the same name), "incompatible" (written for another
    major version of a port), "disabled" (not imported at all) or "ok". What works of it can be used in any
    state. ``problems`` are sentences, ``cause`` the first exception, ``seconds`` the time its import took.
    """

    name: str
    distribution: str
    version: str
    state: State = "ok"
    problems: tuple[str, ...] = ()
    offers: tuple[Offer, ...] = ()
    cause: BaseException | None = field(default=None, compare=False, repr=False)
    seconds: float = field(default=0.0, compare=False)

    @property
    def problem(self) -> str | None:
        """All problems as one text; None when there is none."""
        return " ".join(self.problems) or None

    @property
    def registrations(self) -> tuple[Registration, ...]:
        """What it registered."""
        return tuple(offer.registration for offer in self.offers)


@dataclass(frozen=True, slots=True)
class Plugins:
    """Every package found. ``unmatched`` are names that were to be disabled, or alone used, and are not installed."""

    packages: tuple[Package, ...]
    unmatched: tuple[str, ...] = ()

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

    def registration(self, port: str, name: str) -> Registration:
        """Return the registration chosen by name; see `offer` for the errors."""
        return self.offer(port, name).registration

    def offer(self, port: str, name: str) -> Offer:
        """Return what is registered under ``name``.

        Raises ``PluginConflict`` naming both distributions, ``PluginIncompatible``, ``PluginBroken`` with the
        package's own error as cause, or ``PluginNotInstalled`` with what to install.
        """
        info = port_named(port)
        found = [offer for offer in self.offers(port) if offer.name == name]
        if len(found) > 1:
            owners = " and ".join(offer.distribution for offer in found)
            raise PluginConflict(
                f"{_title(info)} {name!r} is registered by {owners}. "
                f"Uninstall one, or switch it off: PORTICO_DISABLE={found[-1].distribution}"
            )
        if not found:
            self._refuse(info, name)
        if not found[0].compatible:
            raise PluginIncompatible(_incompatible(found[0]))
        return found[0]

    def _refuse(self, info: PortInfo, name: str) -> None:
        wanted = distribution_for(info, name)
        relatives = {_folded(name), _folded(wanted), _folded(wanted.removeprefix("portico-"))}
        mine = [
            package for package in self.packages if {_folded(package.name), _folded(package.distribution)} & relatives
        ]
        for package in mine:
            whose = f"{_title(info)} {name!r} cannot be used: its package {package.distribution} is"
            if package.state == "disabled":
                raise PluginNotInstalled(f"{whose} disabled. {package.problem}")
            if package.state == "broken":
                raise PluginBroken(f"{whose} broken. {package.problem}") from package.cause
        installed = self.names(info.name)
        close = nearest(name, installed)
        broken = [package.distribution for package in self.packages if package.state == "broken"]
        raise PluginNotInstalled(
            f"{_title(info)} {name!r} is not installed. "
            + (f"Did you mean {close[0]}? Otherwise run" if close else "Run")
            + f" `pip install {wanted}`. Installed: {', '.join(installed) or 'none'}."
            + (f" Broken packages: {', '.join(broken)}." if broken else "")
        )


def discover(*, disable: Iterable[str] = (), only: Iterable[str] | None = None) -> Plugins:
    """Import each plugin package's `_plugin.py` and ask it what it offers; no vendor is imported.

    ``disable`` and ``only`` (and the comma-separated PORTICO_DISABLE of the environment) name packages by
    entry point or distribution; one that is switched off is listed and not imported. Nothing that a package
    raises comes out of here, but ``KeyboardInterrupt``.
    """
    from_environment = disabled_by_environment()
    reasons = {_folded(word): f"Switched off by `disable` in [plugins] ({word})." for word in disable}
    reasons |= {_folded(word): f"Switched off by PORTICO_DISABLE ({word})." for word in from_environment}
    allowed = None if only is None else {_folded(word): word for word in only}
    matched: set[str] = set()
    packages = []
    for entry, owner, version in _found():
        words = {_folded(entry.name), *names_of(owner)}
        reason = next((reasons[word] for word in sorted(words & reasons.keys())), None)
        matched |= words
        if reason is None and allowed is not None and not words & allowed.keys():
            reason = "Left out by `only` in [plugins]."
        if reason is not None:
            packages.append(Package(entry.name, owner, version, "disabled", (reason,)))
        else:
            packages.append(_load(entry, owner, version))
    named = {_folded(word): word for word in (*disable, *from_environment, *(only or ()))}
    if named.keys() - matched:
        # A package may have commands and nothing else.
        for _, distribution in entry_points_of(COMMANDS):
            matched |= names_of(distribution.metadata["Name"])
    unmatched = tuple(word for name, word in named.items() if name not in matched)
    return Plugins(tuple(_with_conflicts(packages)), unmatched)


def disabled_by_environment() -> tuple[str, ...]:
    """Return the packages that PORTICO_DISABLE names."""
    words = (word.strip() for word in os.environ.get("PORTICO_DISABLE", "").split(","))
    return tuple(word for word in words if word)


def names_of(distribution: str) -> set[str]:
    """Return by what a distribution may be called where it is switched off."""
    return {_folded(distribution), _folded(distribution.removeprefix("portico-"))}


def port_named(name: str) -> PortInfo:
    """Return what the table of ports says of one; ``ValueError`` when there is no such port."""
    for info in PORTS:
        if info.name == name:
            return info
    raise ValueError(f"there is no port {name!r}; the ports are {', '.join(info.name for info in PORTS)}")


def distribution_for(info: PortInfo, name: str) -> str:
    """Return the name that a distribution registering ``name`` has by convention, or ours that has another."""
    if (info.name, name) in _ELSEWHERE:
        return _ELSEWHERE[info.name, name]
    name = name.replace("_", "-")
    return f"portico-{name}-planner" if info.name == "Planner" else f"portico-{name}"


def entry_points_of(group: str) -> Iterator[tuple[EntryPoint, Distribution]]:
    """Yield the entry points of a group, each distribution once and by itself.

    ``importlib.metadata.entry_points`` reads all distributions in one go, so that one unreadable file would
    hide every package.
    """
    seen: set[str] = set()
    for distribution in distributions():
        try:
            if group not in (distribution.read_text("entry_points.txt") or ""):
                continue
            points = distribution.entry_points.select(group=group)
            name = _folded(distribution.metadata["Name"] or "")
        except Exception:  # noqa: BLE001, S112 - damaged metadata of others; pip reports it
            continue
        if name not in seen:
            seen.add(name)
            for point in points:
                yield point, distribution


def _found() -> list[tuple[EntryPoint, str, str]]:
    points = [
        (point, distribution.metadata["Name"], distribution.version or "unknown")
        for point, distribution in entry_points_of(GROUP)
    ]
    return sorted(points, key=lambda found: (found[0].name, found[1]))


def _load(entry: EntryPoint, distribution: str, version: str) -> Package:
    started = time.perf_counter()
    try:
        # What a package prints on import must not get into the output of `--json`.
        with redirect_stdout(sys.stderr):
            module = entry.load()
        hooks = hooks_of(module, entry.name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit and the like must not end the program either
        problem = f"Its import failed: {_sentence(error)}"
        seconds = time.perf_counter() - started
        return Package(entry.name, distribution, version, "broken", (problem,), cause=error, seconds=seconds)
    problems = list(hooks.problems)
    offers: list[Offer] = []
    cause: BaseException | None = None
    for hook in hooks.found:
        try:
            with redirect_stdout(sys.stderr):
                result = hook.call()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            problems.append(f"Its hook {hook.name} failed: {_sentence(error)}")
            cause = cause or error
            continue
        kept, faults = _checked(hook, result)
        problems += faults
        offers += [Offer(hook.port, registration, entry.name, distribution) for registration in kept]
    seconds = time.perf_counter() - started
    state: State = "broken" if problems else "ok"
    return Package(entry.name, distribution, version, state, tuple(problems), tuple(offers), cause, seconds)


def _checked(hook: Hook, result: object) -> tuple[list[Registration], list[str]]:
    if not isinstance(result, list | tuple):
        return [], [f"Its hook {hook.name} returned {_article(result)}, not a list of Registrations."]
    kept: dict[str, Registration] = {}
    faults = []
    for item in result:
        if not isinstance(item, Registration):
            faults.append(f"Its hook {hook.name} returned {_article(item)} among its Registrations.")
        elif item.name in kept:
            faults.append(f"Its hook {hook.name} registers {item.name!r} twice; the first counts.")
        else:
            kept[item.name] = item
    return list(kept.values()), faults


def _with_conflicts(packages: list[Package]) -> Iterator[Package]:
    counted = Counter((offer.port.name, offer.name) for package in packages for offer in package.offers)
    owners: Mapping[tuple[str, str], list[str]] = {
        key: [p.distribution for p in packages for o in p.offers if (o.port.name, o.name) == key]
        for key, count in counted.items()
        if count > 1
    }
    for package in packages:
        problems = list(package.problems)
        state = package.state
        for offer in package.offers:
            others = [owner for owner in owners.get((offer.port.name, offer.name), ()) if owner != package.distribution]
            if others:
                problems.append(f"{_title(offer.port)} {offer.name!r} is registered by {', '.join(others)} too.")
                state = "conflict" if state in ("ok", "incompatible") else state
            if not offer.compatible:
                problems.append(_incompatible(offer))
                state = "incompatible" if state == "ok" else state
        yield Package(
            package.name,
            package.distribution,
            package.version,
            state,
            tuple(problems),
            package.offers,
            package.cause,
            package.seconds,
        )


def _incompatible(offer: Offer) -> str:
    return (
        f"{_title(offer.port)} {offer.name!r} of {offer.distribution} was written for version "
        f"{offer.registration.port_version} of the port {offer.port.name}; this is version {offer.port.version}. "
        f"Run `pip install --upgrade {offer.distribution} portico-core`."
    )


def _title(info: PortInfo) -> str:
    return info.noun[0].upper() + info.noun[1:]


def _folded(name: str) -> str:
    """Normalise a distribution's name as the packaging specification has it."""
    return re.sub(r"[-_.]+", "-", name).casefold()


def _article(value: object) -> str:
    kind = type(value).__name__
    return "nothing" if value is None else f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _sentence(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - the error of a stranger may not even have a text
        text = ""
    if len(text) > 300:
        text = text[:299] + "…"
    shown = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return shown if shown.endswith((".", "!", "?")) else f"{shown}."

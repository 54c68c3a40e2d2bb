"""What is installed: packages, what each offers, what is wrong with it, and how one is chosen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from portico.errors import PluginBroken, PluginConflict, PluginNotInstalled, nearest
from portico.plugins import Registration
from portico.ports import PORTS, PortInfo
from portico_host.shipped import SHIPPED, folded

__all__ = ["Defect", "Offer", "Package", "Plugins", "State", "distribution_for", "port_named", "title"]

State: TypeAlias = Literal["ok", "broken", "conflict", "incompatible", "empty", "disabled"]


@dataclass(frozen=True, slots=True)
class Defect:
    """One thing that is wrong with a package: a sentence on it, and a sentence on what mends it."""

    sentence: str
    mend: str = ""

    def __str__(self) -> str:
        return f"{self.sentence} {self.mend}".rstrip()


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
    def incompatibility(self) -> Defect | None:
        """What is wrong where it was built for another major version of the port, and which side to upgrade."""
        port, built_for = self.port, self.registration.port_version
        if built_for == port.version:
            return None
        sentence = (
            f"{title(port)} {self.name!r} of {self.distribution} was built for version {built_for} of the port "
            f"{port.name}; the portico-core that is installed has version {port.version}."
        )
        if built_for < port.version:
            mend = f"The package is the older side: run `pip install --upgrade {self.distribution}`."
        else:
            mend = "The core is the older side: run `pip install --upgrade portico-core`."
        return Defect(sentence, mend)


@dataclass(frozen=True, slots=True)
class Package:
    """An installed plugin package: its entry-point name, its distribution, and how it fared.

    ``state`` is the worst that is true of it: "broken" (its import or a hook raised, or it offers something
    malformed), "conflict" (another distribution registered the same name), "incompatible" (built for another
    major version of a port), "empty" (it registers nothing and has no command), "disabled" (not imported at all)
    or "ok". What works of it can be used in any state. ``defects`` are what is wrong, ``cause`` the first
    exception, ``seconds`` the time its import took.
    """

    name: str
    distribution: str
    version: str
    state: State = "ok"
    defects: tuple[Defect, ...] = ()
    offers: tuple[Offer, ...] = ()
    cause: BaseException | None = field(default=None, compare=False, repr=False)
    seconds: float = field(default=0.0, compare=False)

    @property
    def problems(self) -> tuple[str, ...]:
        """The sentences on what is wrong."""
        return tuple(defect.sentence for defect in self.defects)

    @property
    def problem(self) -> str | None:
        """All problems as one text; None when there is none."""
        return " ".join(self.problems) or None

    @property
    def mend(self) -> str | None:
        """What mends them as one text, each once; None when nothing does or need be mended."""
        return " ".join(dict.fromkeys(defect.mend for defect in self.defects if defect.mend)) or None

    @property
    def offered(self) -> str:
        """What it offers, as a sentence; with what is wrong where it offers nothing."""
        whose = f"{self.distribution} {self.version} is installed and"
        if not self.offers:
            return f"{whose} offers nothing. {self.problem or ''} {self.mend or ''}".rstrip()
        return f"{whose} offers {', '.join(f'{offer.port.noun} {offer.name!r}' for offer in self.offers)}."

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

        Raises ``PluginConflict`` naming both distributions, ``PluginBroken`` with the
        package's own error as cause, or ``PluginNotInstalled`` with what to install.
        """
        info = port_named(port)
        found = [offer for offer in self.offers(port) if offer.name == name]
        if len(found) > 1:
            owners = " and ".join(offer.distribution for offer in found)
            raise PluginConflict(
                f"{title(info)} {name!r} is registered by {owners}. {_resolving(found).removesuffix('.')}, "
                f"or set PORTICO_DISABLE={found[-1].distribution}."
            )
        if not found:
            self._refuse(info, name)
        incompatibility = found[0].incompatibility
        if incompatibility is not None:
            raise PluginBroken(str(incompatibility))
        return found[0]

    def _refuse(self, info: PortInfo, name: str) -> None:
        wanted = distribution_for(info, name)
        relatives = {folded(name), folded(wanted), folded(wanted.removeprefix("portico-"))}
        mine = [
            package for package in self.packages if {folded(package.name), folded(package.distribution)} & relatives
        ]
        for package in mine:
            whose = f"{title(info)} {name!r} cannot be used: its package {package.distribution} is"
            if package.state == "disabled":
                raise PluginNotInstalled(f"{whose} disabled. {package.problem} {package.mend or ''}".rstrip())
            if package.state == "broken":
                raise PluginBroken(
                    f"{whose} broken. {package.problem} {package.mend or ''}".rstrip()
                ) from package.cause
        close = nearest(name, self.names(info.name), count=1)
        meant = f" Did you mean {close[0]}?" if close else ""
        broken = [package.distribution for package in self.packages if package.state == "broken"]
        installed = f"Installed: {', '.join(self.names(info.name)) or 'none'}."
        installed += f" Broken packages: {', '.join(broken)}." if broken else ""
        if mine:
            raise PluginNotInstalled(f"{title(info)} {name!r} is not registered.{meant} {installed} {mine[0].offered}")
        # A name that is only guessed may be anybody's at the index, and would be installed unread.
        if wanted in SHIPPED:
            meant += f" {'Otherwise run' if close else 'Run'} `pip install {wanted}`."
        elif not close:
            meant = " No installed package registers it."
            installed += " What each registers is listed by `portico plugins`."
        raise PluginNotInstalled(f"{title(info)} {name!r} is not installed.{meant} {installed}")


def port_named(name: str) -> PortInfo:
    """Return what the table of ports says of one; ``ValueError`` when there is no such port."""
    for info in PORTS:
        if info.name == name:
            return info
    raise ValueError(f"there is no port {name!r}; the ports are {', '.join(info.name for info in PORTS)}")


def distribution_for(info: PortInfo, name: str) -> str:
    """Return the name that a distribution registering ``name`` has by convention, or ours that has another."""
    for distribution, names in SHIPPED.items():
        if name in names.split():
            return distribution
    name = name.replace("_", "-")
    return f"portico-{name}-planner" if info.name == "Planner" else f"portico-{name}"


def _resolving(offers: Iterable[Offer]) -> str:
    from portico_host.mending import mend_of_conflict

    return mend_of_conflict(*(offer.distribution for offer in offers))


def title(info: PortInfo) -> str:
    """Return what a port's services are called, as a sentence begins."""
    return info.noun[0].upper() + info.noun[1:]

"""Names that a new package cannot have: something of that name is there."""

from __future__ import annotations

from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import portico_host
from portico.ports import PORTS
from portico_cli.failures import Misused
from portico_cli.new_packages.names import PackageName
from portico_host.configuration import NONE
from portico_host.host_tables import LoopBudget
from portico_host.packages import distribution_for, port_named
from portico_host.shipped import SHIPPED

__all__ = ["refuse_taken"]


def refuse_taken(name: PackageName) -> None:
    """Raise `Misused` where a port, a hook, an installed package, one of ours or a registration has the name."""
    said = _of_portico(name) or _installed(name) or _shipped(name) or _registered(name)
    if said:
        raise Misused(f"{said} Choose another name.")


def _of_portico(name: PackageName) -> str | None:
    for port in PORTS:
        if name.module == port.hook:
            return f"The hook function of the port {port.name} is called {port.hook}."
        if name.registered in {port.table, port.name.lower(), port.noun.replace(" ", "-").lower()}:
            return f"{name.registered!r} is what the port {port.name} is called in portico.toml and in messages."
        if name.registered == port.key:
            return f"{name.registered!r} is a key of the table [{port.table}] in portico.toml."
    if name.registered == NONE:
        return f'`use = "{NONE}"` in portico.toml switches a port off.'
    if name.kind.port == "Planner" and name.registered in {member.name for member in fields(LoopBudget)}:
        return f"{name.registered!r} is a key of the table [planner] in portico.toml."
    return None


def _shipped(name: PackageName) -> str | None:
    """Refuse what is ours and not installed here: the two could never be installed together."""
    ours = {name.distribution, distribution_for(port_named(name.kind.port), name.registered)} & SHIPPED.keys()
    return f"{min(ours)} is a package of Portico's own: `pip install {min(ours)}`." if ours else None


def _installed(name: PackageName) -> str | None:
    try:
        found = version(name.distribution)
    except PackageNotFoundError:
        pass
    else:
        return f"{name.distribution} {found} is installed."
    try:
        there = find_spec(name.module)
    except ValueError:
        return f"A module {name.module} is there already."
    # A folder without an `__init__.py`, as the working directory may hold one, is no package.
    return f"A module {name.module} is installed." if there and there.origin else None


def _registered(name: PackageName) -> str | None:
    port = port_named(name.kind.port)
    for offer in portico_host.discover().offers(port.name):
        if offer.name.replace("_", "-").lower() == name.registered:
            return f"{offer.distribution} registers the {port.noun} {offer.name!r}."
    return None

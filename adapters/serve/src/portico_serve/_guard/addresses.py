"""At which addresses the server is reached, and which of them a request names."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from portico.errors import ConfigurationError

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[0-9a-z._-]+)(?::([0-9]{1,5}))?")


def is_loopback(host: str) -> bool:
    """Tell whether only programs of this machine reach an address."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Addresses:
    """The origins at which browsers find the server, by the ``Host`` that they send.

    A page of another site may have a name that leads to this machine, and its requests then carry that name. So only
    names that are known are served. An IP address is no name that another site can have: where all interfaces are
    listened to, any with the ``open_port`` is one of ours.
    """

    main: str
    origins: Mapping[str, str]
    open_port: int | None = None

    @classmethod
    def of(cls, host: str, port: int, further: Sequence[str] = ()) -> Addresses:
        """Return the addresses of a server that listens to a host and a port, and those of what stands in front.

        Raises ``ConfigurationError`` for a further address that is no origin.
        """
        everywhere = host in ("0.0.0.0", "::")  # noqa: S104 - what was asked for
        names = _LOOPBACK if is_loopback(host) else (socket.gethostname(), *_LOOPBACK) if everywhere else (host,)
        shown = [f"[{name}]" if ":" in name and not name.startswith("[") else name.lower() for name in names]
        if is_loopback(host) and host not in ("localhost", "127.0.0.1"):
            own = f"[{host}]" if ":" in host else host
            shown = [own, *(each for each in shown if each != own)]
        ours = [_origin(f"http://{name}:{port}") for name in shown]
        others = [_origin(each) for each in further]
        origins = {name: origin for origin in (*ours, *others) for name in _hosts(origin)}
        return cls((others or ours)[0], origins, port if everywhere else None)

    def origin_of(self, host: str) -> str | None:
        """Return the origin that a ``Host`` stands for; None for one that is not ours."""
        name = host.lower()
        if name in self.origins:
            return self.origins[name]
        found = _HOST.fullmatch(name)
        if self.open_port is None or found is None or int(found[2] or 80) != self.open_port:
            return None
        try:
            ipaddress.ip_address(found[1].strip("[]"))
        except ValueError:
            return None
        return f"http://{name}"


def _origin(address: str) -> str:
    """Return an address in the form that browsers send as ``Origin``."""
    try:
        parts = urlsplit(address.lower())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in _DEFAULT_PORTS or not _HOST.fullmatch(parts.netloc) or parts.path.strip("/") or parts.query:
        raise ConfigurationError(
            f"{address[:80]!r} is no address of a server. Give one as https://portico.example or http://10.0.0.5:8321."
        )
    host = parts.netloc.rpartition(":")[0] if port is not None else parts.netloc
    return f"{parts.scheme}://{host}" + ("" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}")


def _hosts(origin: str) -> tuple[str, ...]:
    """Return the forms of ``Host`` of an origin: the default port may be left out."""
    scheme, _, host = origin.partition("://")
    has_port = re.search(r":[0-9]+$", host) is not None
    return (host,) if has_port else (host, f"{host}:{_DEFAULT_PORTS[scheme]}")

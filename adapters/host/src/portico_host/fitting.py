"""Whether what a factory gave is what its port asks for."""

from __future__ import annotations

import inspect
from functools import cache

from portico.ports import PortInfo

__all__ = ["misfit_of"]


def misfit_of(info: PortInfo, service: object, factory: str) -> str:
    """Return why what a factory gave cannot fill a port, without a full stop; empty where it has all members.

    It is asked once for each service that is made, so that those who use it need not ask. That the members take the
    right parameters is for the port's kit to test. Raises what the service's own properties raise.
    """
    if inspect.iscoroutine(service):
        service.close()  # Python would warn that it was never awaited, at some other time and place
        return f"its factory {factory} is asynchronous; a service is made by a plain function"
    if service is None:
        return f"its factory {factory} returned nothing, not a {info.name}"
    missing = [name for name in _members(info.name) if not hasattr(service, name)]
    return f"{type(service).__qualname__} is no {info.name}: it has no {', '.join(missing)}" if missing else ""


@cache
def _members(port: str) -> tuple[str, ...]:
    import portico

    protocol = vars(getattr(portico, port))
    annotated = protocol.get("__annotations__", {})
    # An annotated member with a default is optional.
    required = [name for name in annotated if name not in protocol] + [
        name for name in protocol if name not in annotated
    ]
    return tuple(name for name in required if not name.startswith("_"))

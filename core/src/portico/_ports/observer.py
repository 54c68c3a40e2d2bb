"""The Observer port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from portico._functions.middleware import Middleware


class Observer(Protocol):
    """Watches what an application does, such as for traces and metrics, and changes nothing of it.

    Behaviour: both methods are called while a kernel opens, and later for services that are made on demand, from any
    thread. One that has nothing to watch for adds no middleware and returns services as they are, so that it costs
    nothing. What an observer puts around a service has all its members.
    Errors: ``ConfigurationError`` for a wrong setting. Afterwards it raises nothing.
    """

    name: str

    def observe_kernel(self, middleware: Middleware) -> None:
        """Add to the middleware of a kernel that opens."""
        ...

    def observe_service(self, port: str, service: Any) -> Any:
        """Return what is used in place of a service of a port ("ChatService"): the service, or one around it."""
        ...

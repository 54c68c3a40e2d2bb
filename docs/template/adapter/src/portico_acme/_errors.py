"""The vendor's errors as Portico's: none of the vendor's crosses the port."""

from collections.abc import Iterator
from contextlib import contextmanager

from portico.errors import (
    AuthenticationFailed,
    ContextOverflow,
    RateLimited,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)

from portico_acme._vendor import VendorError

__all__ = ["vendor_errors"]

_KINDS: dict[int, type[ServiceError]] = {
    401: AuthenticationFailed,
    403: AuthenticationFailed,
    408: ServiceTimeout,
    413: ContextOverflow,
    429: RateLimited,
    504: ServiceTimeout,
}


@contextmanager
def vendor_errors(service: str) -> Iterator[None]:
    """Raise what the vendor raises inside as an error of Portico, which keeps it as its cause."""
    try:
        yield
    except VendorError as error:
        kind = _KINDS.get(error.status, ServiceUnavailable if error.status >= 500 else ServiceError)
        raise kind(f"The chat service {service!r} failed: {error}") from error

"""Which error of ours a failure of httpx is."""

from __future__ import annotations

import ssl

import httpx

from portico.errors import ConfigurationError, PorticoError, ServiceTimeout, ServiceUnavailable
from portico_web.http._wire import place_of
from portico_web.http.config import HttpxSettings

__all__ = ["error_of", "may_pass", "unusable"]


def may_pass(error: httpx.HTTPError) -> bool:
    """Tell whether a request that failed so may succeed when it is sent again."""
    if isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError | httpx.ProxyError):
        return False
    return _certificate(error) is None


def error_of(error: httpx.HTTPError, request: httpx.Request, settings: HttpxSettings) -> PorticoError:
    """Return what a failure is in our words, with its cause, which keeps nothing of the request but its address."""
    place = place_of(request.url)
    # An exception of httpx carries the request, headers and all.
    error.request = httpx.Request(request.method, place)
    found = _found(error, place, settings)
    found.__cause__ = error
    return found


def _found(error: httpx.HTTPError, place: str, settings: HttpxSettings) -> PorticoError:
    said = f": {error}" if str(error) else ""
    said = said.rstrip(".")
    certificate = _certificate(error)
    if certificate is not None:
        return ServiceUnavailable(
            f"{place} shows a certificate that is not trusted: {certificate.verify_message}. "
            "Set ca_file under [http.httpx] if it is one of your own."
        )
    match error:
        case httpx.ConnectTimeout():
            return ServiceTimeout(
                f"{place} was not reached in {settings.connect_timeout:g} seconds. Check its address and the network."
            )
        case httpx.TimeoutException():
            return ServiceTimeout(f"{place} was silent for {settings.read_timeout:g} seconds. Try again later.")
        case httpx.UnsupportedProtocol() | httpx.LocalProtocolError():
            return ConfigurationError(f"The request to {place} cannot be sent{said}.")
        case httpx.ProxyError():
            return ServiceUnavailable(f"The proxy refused to reach {place}{said}. Check the proxy and its password.")
        case httpx.ConnectError():
            return ServiceUnavailable(f"{place} cannot be reached{said}. Check its address and the network.")
        case _:
            return ServiceUnavailable(f"The connection to {place} failed{said}. Try again later.")


def _certificate(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error
        error = error.__cause__ or error.__context__
    return None


def unusable(settings: HttpxSettings, error: Exception) -> ConfigurationError:
    """Return what is wrong with settings from which no client can be made."""
    if settings.ca_file is not None and isinstance(error, OSError):
        return ConfigurationError(
            f"ca_file under [http.httpx], {settings.ca_file}, is no readable file of certificates in PEM: {error}."
        )
    if settings.proxy is not None:
        return ConfigurationError(f"proxy under [http.httpx], {settings.proxy!r}, cannot be used: {error}")
    return ConfigurationError(f"The proxy or the certificates that the environment names cannot be used: {error}")

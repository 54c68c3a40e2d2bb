"""Which secrets a call carries, where, and what is missing for it."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from portico.errors import ConfigurationError, nearest
from portico.plugins import Secret
from portico_openapi._documents import Documents
from portico_openapi._errors import Unusable, describe, listing, mapping, show, text
from portico_openapi._parameters import TOKEN

_Place: TypeAlias = Literal["header", "query", "cookie"]

_UNSENDABLE = re.compile(r"[^\x20-\x7e\x80-\U0010ffff]|^ | $")
_PLACES: dict[str, _Place] = {"header": "header", "query": "query", "cookie": "cookie"}


@dataclass(frozen=True, slots=True)
class Scheme:
    """A security scheme: where its secret goes, and as what."""

    name: str
    place: _Place
    key: str
    word: str = ""
    """The word before the secret, such as ``Bearer``; after ``Basic`` it goes in base64."""

    def value(self, secret: Secret) -> str:
        """Return what is sent; a token that is given with its word, as ``Bearer abc``, does not get it twice."""
        revealed = secret.reveal()
        if self.word == "Basic":
            return f"Basic {_in_base64(revealed)}"
        if not self.word or revealed.casefold().startswith(f"{self.word} ".casefold()):
            return revealed
        return f"{self.word} {revealed}"


class Credentials:
    """The secrets of one plugin, with the schemes of its document.

    ``hidden`` are what no error may show. Raises ``ConfigurationError`` for a secret of a scheme
    that the document does not have, and for one that cannot be sent.
    """

    def __init__(
        self, documents: Documents, secrets: Mapping[str, Secret], headers: Mapping[str, str | Secret], name: str
    ) -> None:
        self._secrets = secrets
        self._schemes: dict[str, Scheme | str] = {}
        self._headers = headers
        declared: dict[str, Any] = {}
        uri = documents.root_uri
        with suppress(Unusable):
            components, uri = documents.member(mapping, documents.root, "components", uri)
            declared, uri = documents.member(mapping, components, "securitySchemes", uri)
        for known, scheme in declared.items():
            try:
                self._schemes[known] = _scheme(known, documents.follow(scheme, uri).value)
            except Unusable as error:
                self._schemes[known] = str(error)
        for given, secret in secrets.items():
            self._check(f"functions.{name}.credentials.{given}", given, secret)
        for header, value in headers.items():
            place = f"functions.{name}.{'secret_headers' if isinstance(value, Secret) else 'headers'}.{header}"
            if not TOKEN.fullmatch(header):
                raise ConfigurationError(f"{place}: this is no name of a header.")
            _require_sendable(place, _reveal(value))
        self.hidden = (*secrets.values(), *(value for value in headers.values() if isinstance(value, Secret)))

    def _check(self, place: str, given: str, secret: Secret) -> None:
        scheme = self._schemes.get(given)
        if scheme is None:
            known = list(self._schemes)
            advice = f"Nearest: {', '.join(nearest(given, known)) or ', '.join(known)}."
            if not known:
                advice = "It has none; `secret_headers` sends a secret in a header."
            raise ConfigurationError(f"{place}: the document has no security scheme of this name. {advice}")
        if isinstance(scheme, str):
            raise ConfigurationError(f"{place}: the scheme cannot be used here: {scheme}.")
        _require_sendable(place, secret.reveal())
        if scheme.word == "Basic" and ":" not in secret.reveal():
            raise ConfigurationError(f"{place}: expected `user:password`, with a colon.")

    def choose(self, operation: Mapping[str, Any], document: Mapping[str, Any]) -> tuple[Scheme, ...] | str:
        """Return the schemes of the first alternative whose secrets are there, or what is missing.

        The alternatives are the operation's own, or the document's. One without schemes means that nothing is
        needed; it comes last. A mistake in them is something missing: it may concern every operation.
        """
        try:
            requirements = listing(operation if operation.get("security") is not None else document, "security")
        except Unusable as error:
            return f"which the document does not tell: {error}"
        missing: list[str] = []
        for requirement in requirements:
            if type(requirement) is not dict:
                missing.append(f"which the document does not tell: it has {describe(requirement)} for an object")
                continue
            lacking = [reason for name in requirement if (reason := self._lacking(name)) is not None]
            if lacking:
                missing.append(" and ".join(lacking))
            elif requirement:
                found = [self._schemes.get(name) for name in requirement if name in self._secrets]
                return tuple(scheme for scheme in found if isinstance(scheme, Scheme))
        return () if {} in requirements or not requirements else " or ".join(dict.fromkeys(missing))

    def _lacking(self, name: str) -> str | None:
        """Say what a scheme needs; None when its secret, or a header that carries it, is there."""
        scheme = self._schemes.get(name)
        if name in self._secrets:
            return None
        if isinstance(scheme, Scheme):
            return None if scheme.place == "header" and self.fills("header", scheme.key, ()) else show(name)
        if self.fills("header", "Authorization", ()):
            return None
        problem = f"cannot be used here: {scheme}" if scheme else "is not described by the document"
        return f"{show(name)}, which {problem}"

    def secret_of(self, scheme: Scheme) -> str:
        """Return what a scheme sends, to be put on the wire and nowhere else."""
        return scheme.value(self._secrets[scheme.name])

    def fixed_headers(self) -> list[tuple[str, str]]:
        """Return the headers of the settings, to be put on the wire and nowhere else."""
        return [(name, _reveal(value)) for name, value in self._headers.items()]

    def fills(self, location: str, name: str, schemes: tuple[Scheme, ...]) -> bool:
        """Return whether a parameter is filled by the settings, so that no caller need know it."""
        filled = [("header", header) for header in self._headers] + [(scheme.place, scheme.key) for scheme in schemes]
        if location == "header":
            return any(place == "header" and key.casefold() == name.casefold() for place, key in filled)
        return (location, name) in filled


def _reveal(value: str | Secret) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def _in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


def _require_sendable(place: str, value: str) -> None:
    if _UNSENDABLE.search(value):
        raise ConfigurationError(f"{place}: the value has line breaks, control characters or spaces around it.")


def _scheme(name: str, value: Any) -> Scheme:
    if type(value) is not dict:
        raise Unusable(f"expected an object, not {describe(value)}")
    kind = text(value, "type")
    if kind == "apiKey":
        place, key = text(value, "in"), text(value, "name")
        if place not in _PLACES or not key:
            raise Unusable("an apiKey has a name, and is in header, query or cookie")
        if place != "query" and not TOKEN.fullmatch(key):
            raise Unusable(f"{show(key)!r} is no name of a {place}")
        return Scheme(name, _PLACES[place], key)
    word = text(value, "scheme") or "" if kind == "http" else "Bearer"
    if kind not in ("http", "oauth2", "openIdConnect"):
        raise Unusable(f"schemes of the type {describe(kind)} are not known here")
    if not TOKEN.fullmatch(word) or word.casefold() == "digest":
        raise Unusable(f"the http scheme {show(word)!r} is not known here")
    usual = word.capitalize()
    return Scheme(name, "header", "Authorization", usual if usual in ("Basic", "Bearer") else word)

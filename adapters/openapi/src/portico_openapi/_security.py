"""Which secrets a call carries, where, and what is missing for it."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from portico.errors import ConfigurationError, nearest
from portico.plugins import Secret
from portico_openapi._documents import Documents
from portico_openapi._wrong import Wrong, described, listing, mapping, shown, text

_Place: TypeAlias = Literal["header", "query", "cookie"]

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_UNSENDABLE = re.compile(r"[^\x20-\x7e\x80-\U0010ffff]")
_PLACES: dict[str, _Place] = {"header": "header", "query": "query", "cookie": "cookie"}
_SHORTEST_SCRUBBED = 4


@dataclass(frozen=True, slots=True)
class Scheme:
    """A security scheme: where its secret goes, and as what."""

    name: str
    place: _Place
    key: str
    form: str
    """``{}`` stands for the secret; ``basic`` is user and password in base64."""

    def value(self, secret: Secret) -> str:
        """Return what is sent; a token that is given with its word, as ``Bearer abc``, does not get it twice."""
        revealed = secret.reveal()
        if self.form == "basic":
            return f"Basic {base64.b64encode(revealed.encode()).decode('ascii')}"
        word = self.form.partition("{}")[0]
        return revealed if word and revealed.casefold().startswith(word.casefold()) else self.form.format(revealed)


class Credentials:
    """The secrets of one plugin, with the schemes of its document.

    Raises ``ConfigurationError`` for a secret of a scheme that the document does not have, and for one that
    cannot be sent.
    """

    def __init__(
        self, documents: Documents, secrets: Mapping[str, Secret], headers: Mapping[str, str | Secret], name: str
    ) -> None:
        self._name = name
        self._secrets = secrets
        self._schemes: dict[str, Scheme | str] = {}
        self.headers = dict(headers)
        self._given_headers = {header.casefold() for header in headers}
        for known, scheme in _declared(documents).items():
            try:
                self._schemes[known] = _scheme(known, documents.follow(scheme, documents.root_uri).value)
            except Wrong as error:
                self._schemes[known] = str(error)
        for given, secret in secrets.items():
            self._check(given, secret)
        for header, value in headers.items():
            setting = "secret_headers" if isinstance(value, Secret) else "headers"
            _check_header(f"functions.{name}.{setting}.{header}", header, value)

    def _check(self, given: str, secret: Secret) -> None:
        place = f"functions.{self._name}.credentials.{given}"
        if given not in self._schemes:
            known = list(self._schemes)
            if not known:
                advice = "It has none; `secret_headers` sends a secret in a header."
            else:
                advice = f"Nearest: {', '.join(nearest(given, known)) or ', '.join(known)}."
            raise ConfigurationError(f"{place}: the document has no security scheme of this name. {advice}")
        scheme = self._schemes[given]
        if isinstance(scheme, str):
            raise ConfigurationError(f"{place}: the scheme cannot be used here: {scheme}.")
        if _UNSENDABLE.search(secret.reveal()) or secret.reveal() != secret.reveal().strip():
            raise ConfigurationError(f"{place}: the secret has line breaks, control characters or spaces around it.")
        if scheme.form == "basic" and ":" not in secret.reveal():
            raise ConfigurationError(f"{place}: expected `user:password`, with a colon.")

    def choose(self, operation: Mapping[str, Any], document: Mapping[str, Any]) -> tuple[Scheme, ...] | str:
        """Return the schemes of the first alternative whose secrets are there, or what is missing.

        The alternatives are the operation's own, or the document's. One without schemes means that nothing is
        needed; it comes last. A mistake in them is something missing: it may concern every operation.
        """
        try:
            requirements = listing(operation if operation.get("security") is not None else document, "security")
        except Wrong as error:
            return f"which the document does not tell: {error}"
        missing: list[str] = []
        open_to_all = not requirements
        for requirement in requirements:
            if type(requirement) is not dict:
                missing.append(f"which the document does not tell: it has {described(requirement)} for an object")
                continue
            if not requirement:
                open_to_all = True
                continue
            lacking = [reason for name in requirement if (reason := self._lacking(name)) is not None]
            if not lacking:
                found = [self._schemes.get(name) for name in requirement if name in self._secrets]
                return tuple(scheme for scheme in found if isinstance(scheme, Scheme))
            missing.append(" and ".join(lacking))
        return () if open_to_all else " or ".join(dict.fromkeys(missing))

    def _lacking(self, name: str) -> str | None:
        """Say what a scheme needs; None when its secret, or a header that carries it, is there."""
        if name in self._secrets:
            return None
        scheme = self._schemes.get(name)
        if isinstance(scheme, Scheme):
            carried = scheme.place == "header" and scheme.key.casefold() in self._given_headers
            return None if carried else shown(name)
        if "authorization" in self._given_headers:
            return None
        problem = f"cannot be used here: {scheme}" if scheme else "is not described by the document"
        return f"{shown(name)}, which {problem}"

    def secret_of(self, scheme: Scheme) -> str:
        """Return what a scheme sends, to be put on the wire and nowhere else."""
        return scheme.value(self._secrets[scheme.name])

    def fixed_headers(self) -> list[tuple[str, str]]:
        """Return the headers of the settings, to be put on the wire and nowhere else."""
        return [(name, value.reveal() if isinstance(value, Secret) else value) for name, value in self.headers.items()]

    def fills(self, location: str, name: str, schemes: tuple[Scheme, ...]) -> bool:
        """Return whether a parameter is filled by the settings, so that no caller need know it."""
        if location == "header" and name.casefold() in self._given_headers:
            return True
        if location == "header":
            return any(scheme.place == "header" and scheme.key.casefold() == name.casefold() for scheme in schemes)
        return any(scheme.place == location and scheme.key == name for scheme in schemes)

    def scrub(self, words: str) -> str:
        """Replace every secret in what a service said: some repeat the key that they refuse."""
        secrets = [secret.reveal() for secret in self._secrets.values()]
        secrets += [value.reveal() for value in self.headers.values() if isinstance(value, Secret)]
        forms = {form for secret in secrets for form in _forms_of(secret) if len(form) >= _SHORTEST_SCRUBBED}
        for form in sorted(forms, key=len, reverse=True):
            words = words.replace(form, "********")
        return words


def _forms_of(secret: str) -> tuple[str, ...]:
    encoded = base64.b64encode(secret.encode()).decode("ascii")
    password = secret.partition(":")[2]
    return secret, password, encoded, quote(secret, safe=""), " ".join(secret.split())


def _declared(documents: Documents) -> Mapping[str, Any]:
    try:
        return mapping(mapping(documents.root, "components"), "securitySchemes")
    except Wrong:
        return {}


def _scheme(name: str, value: Any) -> Scheme:
    if type(value) is not dict:
        raise Wrong(f"expected an object, not {described(value)}")
    kind = text(value, "type")
    if kind == "apiKey":
        place, key = text(value, "in"), text(value, "name")
        if place not in _PLACES or not key:
            raise Wrong("an apiKey has a name, and is in header, query or cookie")
        if place in ("header", "cookie") and not _TOKEN.fullmatch(key):
            raise Wrong(f"{shown(key)!r} is no name of a {place}")
        return Scheme(name, _PLACES[place], key, "{}")
    if kind == "http":
        word = text(value, "scheme") or ""
        if word.casefold() == "basic":
            return Scheme(name, "header", "Authorization", "basic")
        if not _TOKEN.fullmatch(word) or word.casefold() == "digest" or "{" in word:
            raise Wrong(f"the http scheme {shown(word)!r} is not known here")
        return Scheme(name, "header", "Authorization", f"{'Bearer' if word.casefold() == 'bearer' else word} {{}}")
    if kind in ("oauth2", "openIdConnect"):
        return Scheme(name, "header", "Authorization", "Bearer {}")
    raise Wrong(f"schemes of the type {described(kind)} are not known here")


def _check_header(place: str, name: str, value: str | Secret) -> None:
    content = value.reveal() if isinstance(value, Secret) else value
    if not _TOKEN.fullmatch(name):
        raise ConfigurationError(f"{place}: this is no name of a header.")
    if _UNSENDABLE.search(content) or content != content.strip():
        raise ConfigurationError(f"{place}: the value has line breaks, control characters or spaces around it.")

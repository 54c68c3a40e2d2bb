"""What Milvus, its client and gRPC report, as errors of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from portico.errors import PorticoError, StoreBusy, StoreError
from portico_milvus.config import MilvusSettings

_MISSING = 100
_MISSING_BEFORE_2_3 = 4
_LONGEST = 500


class WrongDimensions(ValueError):
    """The caller's vectors are not as long as those in the namespace."""

    def __init__(self, what: str, dimensions: int, known: int) -> None:
        super().__init__(f"{what} {dimensions} dimensions, those in the namespace {known}")


def is_missing(error: Exception) -> bool:
    """Tell whether the server says that there is no such collection."""
    codes = getattr(error, "code", None), getattr(error, "compatible_code", None)
    return codes[0] == _MISSING or codes[1] == _MISSING_BEFORE_2_3


def is_answer(error: Exception) -> bool:
    """Tell whether the server itself refused, rather than being silent or out of reach."""
    return isinstance(getattr(error, "code", None), int)


def not_ours(name: str) -> StoreError:
    """Return the error for a collection with other fields than ours."""
    return StoreError(
        f"The Milvus collection {name} has other fields than this version of portico-milvus writes. Set another "
        "`prefix` in [vectors.milvus], or drop the collection; what is derived from documents is then built again."
    )


@contextmanager
def mapped_errors(settings: MilvusSettings) -> Iterator[None]:
    """Raise ``StoreError`` or ``StoreBusy`` for whatever goes wrong in the block; the token is in neither.

    Other mistakes of a caller are looked for before, so a ``ValueError`` in the block is the client's.
    """
    try:
        yield
    except (PorticoError, WrongDimensions):
        raise
    except Exception as error:  # noqa: BLE001 - the client raises its own, gRPC's and those of what it packs rows with
        told = _told(settings, error)
        # A server may repeat the token, and a traceback shows the cause.
        raise told from (None if _hides(settings, str(error)) != str(error) else error)


def _told(settings: MilvusSettings, error: Exception) -> StoreError:
    place = f"The Milvus server {settings.uri}" if settings.is_server else f"Milvus Lite in {settings.uri}"
    if isinstance(error, ImportError) and not settings.is_server:
        return StoreError(f"{place} cannot run: {error}. Run `pip install 'portico-milvus[lite]'`.")
    if type(error).__name__ == "DataDirLockedError":
        return StoreBusy(
            f"{place} is in use by another process, and Milvus Lite lets only one in. Stop that one, or run "
            "`milvus-lite server --host 127.0.0.1` and set its address as `uri`."
        )
    code, words = _code(error), _hides(settings, _words(error))
    if code == "DEADLINE_EXCEEDED" or "timeout" in words.lower():
        return StoreError(
            f"{place} did not answer within {settings.timeout:g} s: {words}. Try again, or raise `timeout` in "
            "[vectors.milvus]."
        )
    if code == "UNAUTHENTICATED" or "auth check" in words or "not authenticated" in words:
        return StoreError(f"{place} does not accept the `token` in [vectors.milvus]: {words}.")
    if code == "PERMISSION_DENIED" or "permission deny" in words:
        return StoreError(f"{place} does not let the `token` in [vectors.milvus] do this: {words}.")
    if code in {"UNAVAILABLE", "UNIMPLEMENTED"} or "connect" in words.lower():
        return StoreError(
            f"{place} cannot be reached: {words}. See whether it runs, and whether `uri` in [vectors.milvus] is its "
            "gRPC address."
        )
    return StoreError(f"{place} failed: {words}.")


def _code(error: Exception) -> str:
    code = getattr(error, "code", None)
    # It is a method of a gRPC error, and a property of the client's.
    return str(getattr(code() if callable(code) else code, "name", ""))


def _words(error: Exception) -> str:
    details = getattr(error, "details", None)
    words = details() if callable(details) else getattr(error, "message", None) or str(error) or type(error).__name__
    words = " ".join(str(words).split()).rstrip(".")
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"


def _hides(settings: MilvusSettings, words: str) -> str:
    if settings.token is None:
        return words
    token = settings.token.reveal()
    for part in sorted({token, *token.split(":", 1)}, key=len, reverse=True):
        # A user's name may be an ordinary word; the password and a key are not.
        if len(part) > 3 and part != "root":
            words = words.replace(part, "********")
    return words

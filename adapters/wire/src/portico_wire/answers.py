"""Bodies of requests and answers, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from portico_wire.errors import Peer, invalid, reported_error

_encode = msgspec.json.Encoder().encode


def encode_json(value: Mapping[str, Any]) -> bytes:
    """Write an object; half a surrogate pair, which UTF-8 cannot hold, becomes U+FFFD."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_without_halves(value))


def _without_halves(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, Mapping):
        return {_without_halves(key): _without_halves(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_halves(part) for part in value]
    return value


class Answer(msgspec.Struct):
    """What every answer may have: an error that came with status 200."""

    error: Any = None


AnyAnswer = TypeVar("AnyAnswer", bound=Answer)


def decode_answer(decoder: msgspec.json.Decoder[AnyAnswer], text: bytes, peer: Peer, what: str) -> AnyAnswer:
    """Read an answer; raises the error that it reports, or ``ResponseInvalid``."""
    try:
        str(text, "utf-8")  # what the decoder leaves raw, it does not look at
        answer = decoder.decode(text)
    except msgspec.ValidationError as error:
        raise invalid(peer, f"sent {what} that is not in {peer.protocol}'s format ({error})", text) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid(peer, f"sent {what} that is {'not JSON' if text.strip() else 'empty'}", text) from error
    if answer.error:
        raise reported_error(peer, answer.error)
    return answer

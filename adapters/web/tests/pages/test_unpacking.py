"""Content encodings: what was packed comes back, and never more than the bound."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import zlib
from collections.abc import AsyncIterator

from hypothesis import given, strategies as st

from portico.errors import LimitExceeded, PorticoError
from portico_web._unpacking import unpack as unpack_body

PACK = {"gzip": gzip.compress, "deflate": zlib.compress, "identity": bytes}


def unpack(data: bytes, encoding: str, size: int, *, most: int = 10_000, cut: bool = False) -> bytes:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(data), size):
            yield data[start : start + size]

    return asyncio.run(unpack_body(pieces(), encoding, most, "x", truncate=cut))


@given(st.binary(max_size=500), st.sampled_from(sorted(PACK)), st.integers(1, 600))
def test_what_was_packed_comes_back_however_it_is_cut_in_pieces(data: bytes, encoding: str, size: int) -> None:
    assert unpack(PACK[encoding](data), encoding, size) == data


@given(st.binary(max_size=50), st.binary(max_size=50), st.integers(1, 99))
def test_what_stands_behind_packed_data_is_left_alone(data: bytes, behind: bytes, size: int) -> None:
    assert unpack(gzip.compress(data) + behind, "gzip", size) == data


@given(
    st.binary(max_size=300),
    st.sampled_from(["gzip", "deflate", "gzip, deflate", "br", ",,", "x" * 50]),
    st.integers(1, 99),
)
def test_any_bytes_unpack_or_are_refused(data: bytes, encoding: str, size: int) -> None:
    with contextlib.suppress(PorticoError):
        assert len(unpack(data, encoding, size)) <= 10_000


@given(st.integers(0, 40_000), st.integers(1, 5_000), st.sampled_from(["gzip", "deflate", ""]))
def test_the_bound_holds_to_the_byte(length: int, most: int, encoding: str) -> None:
    packed = PACK[encoding or "identity"](b"\0" * length)
    fits = length <= most
    try:
        assert unpack(packed, encoding, 1_000, most=most) == b"\0" * length
        assert fits, f"{length} bytes passed a bound of {most}"
    except LimitExceeded:
        assert not fits, f"{length} bytes were refused by a bound of {most}"
    beginning = unpack(packed, encoding, 1_000, most=most, cut=True)
    assert len(beginning) <= most
    assert set(beginning) <= {0}

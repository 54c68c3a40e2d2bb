"""Whether a failure behind a service comes out as an error of Portico."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest

from portico.errors import PorticoError

__all__ = ["fails_as"]


async def fails_as(
    kinds: type[PorticoError] | tuple[type[PorticoError], ...],
    call: Awaitable[object],
    what: str,
    *,
    must: bool = True,
    hidden: str = "",
) -> None:
    """Fail unless a call that cannot work raises one of ``kinds`` with more than a word.

    The error of another library may be its cause only. ``must`` is False for a call that may work all the same;
    ``hidden`` is a secret that may stand in no error and no cause.
    """
    try:
        result = await call
    except Exception as error:
        if not isinstance(error, kinds):
            raise AssertionError(f"{what} raised {type(error).__name__}: {error}") from error
        assert len(str(error)) > 10, f"{what} fails and says {str(error)!r} only"
        cause: BaseException | None = error
        seen: list[BaseException] = []
        while cause is not None and cause not in seen:
            seen.append(cause)  # a library may raise an error from itself
            assert not hidden or hidden not in f"{cause} {cause!r}", f"a secret is in the error of {what}, or its cause"
            cause = cause.__cause__ or cause.__context__
    else:
        if must:
            pytest.fail(f"{what} gave {result!r}, and what it stands on fails")

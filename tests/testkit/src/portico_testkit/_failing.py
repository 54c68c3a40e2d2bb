"""Whether what fails behind a service comes out of it as an error of Portico."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest

from portico.errors import PorticoError

__all__ = ["fails_as"]


async def fails_as(
    kinds: type[PorticoError] | tuple[type[PorticoError], ...], call: Awaitable[object], what: str, *, must: bool = True
) -> None:
    """Fail unless a call of something that cannot work raises one of ``kinds`` and says more than a word.

    What another library raised is its cause and does not come out itself. ``must`` is False for a call that may
    work all the same.
    """
    try:
        result = await call
    except kinds as error:
        assert len(str(error)) > 10, f"{what} fails and says {str(error)!r} only"
    except Exception as error:
        raise AssertionError(f"{what} raised {type(error).__name__}: {error}") from error
    else:
        if must:
            pytest.fail(f"{what} gave {result!r}, and what it stands on fails")

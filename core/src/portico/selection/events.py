"""What turns and pursuits say of a selection. It lies by itself, for both load it whether a selector is used or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from portico.selection.selection import Selection

__all__ = ["FunctionsOffered"]


@dataclass(frozen=True, slots=True)
class FunctionsOffered:
    """There were more functions than a model is told of; these are offered, and no others can be called.

    It comes before the model is asked, where a function selector is at work and leaves something out.
    """

    selection: Selection

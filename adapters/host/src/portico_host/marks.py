"""Pluggy's marks of hooks, for those who want them: a function that is named like its hook needs none."""

from __future__ import annotations

from pluggy import HookimplMarker, HookspecMarker

hookimpl = HookimplMarker("portico")
hookspec = HookspecMarker("portico")

"""What a runner has beside running: its queue of jobs, its record of results."""

from __future__ import annotations

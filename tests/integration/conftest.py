"""What of this folder holds no tests: processes that the tests start."""

from __future__ import annotations

collect_ignore = ["web_server.py"]

"""MCPFunctions does what every FunctionSource must, over pipes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from portico_mcp.config import MCPSettings
from portico_mcp.functions import MCPFunctions
from portico_testkit.function_source import FunctionSourceKit
from portico_testkit.package import PackageKit

ODD = Path(__file__).parent / "servers" / "odd.py"


class TestAServer(FunctionSourceKit):
    @pytest.fixture
    def function_source(self, tmp_path: Path) -> MCPFunctions:
        return MCPFunctions(MCPSettings(command=sys.executable, args=(str(ODD), "normal"), approvals=tmp_path))

    @pytest.fixture
    def unreadable_source(self, tmp_path: Path) -> MCPFunctions:
        return MCPFunctions(MCPSettings(command="no-such-program", approvals=tmp_path))


class TestPackage(PackageKit):
    distribution = "portico-mcp"
    settings = (MCPSettings(command="mcp-server-time"),)

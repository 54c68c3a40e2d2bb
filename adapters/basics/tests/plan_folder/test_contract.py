"""FolderPlanStore does what every PlanStore must, PlanFiles what every FunctionSource must."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from portico_basics.config import PlanFolderSettings
from portico_basics.plan_folder.functions import PlanFiles
from portico_basics.plan_folder.store import FolderPlanStore
from portico_testkit.function_source import FunctionSourceKit
from portico_testkit.plan_store import PlanStoreKit

GREETING = {
    "version": 1,
    "goal": "Greet somebody",
    "input": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "times": {"type": "integer", "default": 1}},
        "required": ["name"],
    },
    "steps": [{"id": "s1", "function": "Tone-shout", "arguments": {"text": {"from": "input", "path": "$.name"}}}],
    "result": {"from": "s1"},
}


class TestFolderPlanStore(PlanStoreKit):
    @pytest.fixture
    def plan_store(self, tmp_path: Path) -> FolderPlanStore:
        return FolderPlanStore(PlanFolderSettings(path=tmp_path / "plans"))

    async def another(self, plan_store: FolderPlanStore) -> FolderPlanStore:
        return FolderPlanStore(plan_store.settings)

    @pytest.fixture
    def failing_store(self, tmp_path: Path) -> FolderPlanStore:
        (tmp_path / "a file").write_text("This is a file, and no folder.")
        return FolderPlanStore(PlanFolderSettings(path=tmp_path / "a file"))


class TestPlanFiles(FunctionSourceKit):
    @pytest.fixture
    def function_source(self, tmp_path: Path) -> PlanFiles:
        (tmp_path / "greet.json").write_text(json.dumps(GREETING))
        (tmp_path / "greet twice.json").write_text(json.dumps(GREETING))
        (tmp_path / "broken.json").write_text("{")
        return PlanFiles(PlanFolderSettings(path=tmp_path))

    @pytest.fixture
    def unreadable_source(self, tmp_path: Path) -> PlanFiles:
        return PlanFiles(PlanFolderSettings(path=tmp_path / "recipse"))

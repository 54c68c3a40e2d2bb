"""PromptFiles does what every FunctionSource must."""

from __future__ import annotations

from pathlib import Path

import pytest

from portico_basics.config import PromptFilesSettings
from portico_basics.prompts.functions import PromptFiles
from portico_testkit.function_source import FunctionSourceKit

STORY = """\
name: Story
description: Tell a story.
template: |
  Tell a story about {{$topic}} that is {{$length}} sentences long.
template_format: semantic-kernel
input_variables:
  - name: topic
    description: The topic of the story.
    is_required: true
  - name: length
    description: The number of sentences.
    default: 3
    json_schema: '{"type": "integer"}'
output_variable:
  description: The story.
execution_settings:
  default:
    temperature: 0.6
"""


class TestPromptFiles(FunctionSourceKit):
    @pytest.fixture
    def function_source(self, tmp_path: Path) -> PromptFiles:
        (tmp_path / "Summarise").mkdir()
        (tmp_path / "Summarise" / "prompt.txt").write_text("In {{$words}} words: {{$text}}")
        (tmp_path / "Summarise" / "prompt.toml").write_text('inputs.words = {type = "integer", default = 50}')
        (tmp_path / "Broken").mkdir()
        (tmp_path / "Broken" / "prompt.txt").write_text("{{$}}")
        (tmp_path / "story.prompt.yaml").write_text(STORY)
        return PromptFiles(PromptFilesSettings(path=tmp_path))

    @pytest.fixture
    def unreadable_source(self, tmp_path: Path) -> PromptFiles:
        return PromptFiles(PromptFilesSettings(path=tmp_path / "prompst"))

"""The codecs and the validator as an application has them: installed, and nothing configured."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import attrs
import msgspec
import pydantic
import pytest

import portico_host
from portico import ToolCall, function
from portico.errors import ArgumentsInvalid


@attrs.frozen
class Room:
    number: int
    beds: int = attrs.field(default=1, validator=attrs.validators.ge(1))


class Guest(pydantic.BaseModel):
    name: Annotated[str, pydantic.Field(min_length=1)]
    room: Annotated[int, "the number on the door"] = 0


class Stay(msgspec.Struct, rename="camel"):
    first_night: str
    guests: list[Guest]
    room: Room | None = None


@function
def book(stay: Stay, limit: Annotated[int, pydantic.Field(ge=1)] = 4) -> list[Guest]:
    """Book a stay."""
    assert stay.room is not None
    return [Guest(name=guest.name, room=stay.room.number) for guest in stay.guests[:limit]]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


async def test_types_of_three_libraries_meet_in_one_function() -> None:
    async with portico_host.open() as kernel:
        assert [codec.name for codec in kernel.type_codecs] == ["attrs", "msgspec", "pydantic"]
        kernel.add_function(book)
        stay = {"firstNight": "2026-02-01", "guests": [{"name": "Ada"}, {"name": "Bo"}], "room": {"number": 12}}
        assert await kernel.invoke_json("book", {"stay": stay}) == [
            {"name": "Ada", "room": 12},
            {"name": "Bo", "room": 12},
        ]


async def test_a_call_that_does_not_fit_is_answered_with_the_places() -> None:
    async with portico_host.open() as kernel:
        kernel.add_function(book)
        with pytest.raises(ArgumentsInvalid) as caught:
            await kernel.invoke_json("book", {"stay": {"firstNight": 5, "guests": []}, "limit": 0})
        assert [fault.partition(":")[0] for fault in caught.value.faults] == ["stay.firstNight", "limit"]
        result = await kernel.call_tool(ToolCall("1", "book", '{"stay": {}}'))
        assert result.error
        assert "firstNight" in str(result.content)


async def test_the_schemas_of_all_of_them_are_known_to_the_validator_that_is_installed() -> None:
    async with portico_host.open() as kernel:
        added = kernel.add_function(book)
        assert kernel.schema_validator is not None
        assert kernel.schema_validator.name == "jsonschema"
        validate = kernel.schema_validator.compile(added.spec.parameters)
        assert validate({"stay": {"firstNight": "x", "guests": []}, "limit": 0}) == [
            "$.limit: expected at least 1, got 0"
        ]


def test_opening_a_kernel_imports_no_vendor_of_a_codec_or_validator(tmp_path: Path) -> None:
    code = """
import asyncio, sys
import portico_host
async def main():
    async with portico_host.open() as kernel:
        return [codec.name for codec in kernel.type_codecs], kernel.schema_validator.name
print(asyncio.run(main()), {"pydantic", "msgspec", "jsonschema", "referencing"} & set(sys.modules))
"""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PORTICO_")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path, env=clean
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(['attrs', 'msgspec', 'pydantic'], 'jsonschema') set()"

"""The OpenAPI evaluation counts what becomes a function and what does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.eval.__main__ import main


def written(folder: Path, name: str, paths: Any) -> str:
    path = folder / name
    path.write_text(json.dumps({"openapi": "3.0.3", "info": {"title": "T", "version": "1"}, "paths": paths}))
    return str(path)


def test_usable_and_lost_operations_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = written(tmp_path, "good.json", {"/a": {"get": {}, "put": {}}, "/b": {"post": {}}})
    bad = written(tmp_path, "bad.json", {"/a": {"get": {}, "put": {"requestBody": {"$ref": "#/nowhere"}}}})
    assert main(["openapi", bad]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    reason = "requestBody.$ref: '#/nowhere' leads nowhere: there is no 'nowhere'"
    assert result == {"operations": 2, "usable": 1, "lost": [{"operation": "PUT /a", "reason": reason}]}
    assert main(["openapi", good, bad, "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    result = json.loads(out)
    assert (result["operations"], result["usable"]) == (5, 4)
    assert result["lost"][0]["operation"] == f"{bad}: PUT /a"


def test_what_is_no_document_is_one_loss_and_a_missing_file_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.yaml").write_text("hello")
    good = written(tmp_path, "good.json", {"/a": {"get": {}}})
    assert main(["openapi", str(tmp_path / "text.yaml"), good, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["operations"], result["usable"]) == (2, 1)
    assert result["lost"][0]["operation"] == str(tmp_path / "text.yaml")
    assert main(["openapi", str(tmp_path / "none.yaml")]) == 1
    assert "none.yaml" in capsys.readouterr().err

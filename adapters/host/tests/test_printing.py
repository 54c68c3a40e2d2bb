"""What packages print while they are imported goes to standard error, and standard output stays everybody else's."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

import portico_host
from portico_host.loading import import_quietly, printing_to_stderr

PATIENCE = 30.0


def in_a_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_standard_output_is_as_it_was_after_two_threads_that_overlap(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout
    entered, first_left = threading.Event(), threading.Event()

    def second() -> None:
        with printing_to_stderr():
            entered.set()
            assert first_left.wait(PATIENCE)
            print("the second, inside")

    with printing_to_stderr():
        thread = in_a_thread(second)
        assert entered.wait(PATIENCE)
        with printing_to_stderr():
            pass
        print("the first, inside")
    print("the first, after its own")
    first_left.set()
    thread.join(PATIENCE)
    assert sys.stdout is before
    assert capsys.readouterr() == ("", "the first, inside\nthe first, after its own\nthe second, inside\n")


def test_a_module_that_is_imported_leaves_standard_output_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    monkeypatch.setattr("portico_host.loading.import_module", lambda name: seen.append(sys.stdout))
    before = sys.stdout
    import_quietly("json")
    import_quietly("a_module_that_is_not_imported")
    assert seen[0] is before
    assert seen[1] is not before


@pytest.mark.parametrize("missing", ["stdout", "stderr"])
def test_a_program_without_a_console_imports_too(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr(sys, missing, None)
    with printing_to_stderr():
        print("to nobody")
    assert getattr(sys, missing) is None


def test_a_command_that_prints_on_import_is_kept_out_of_it_too(
    site: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (site.folder / "acme_command.py").write_text("print('loud')\ntidy = 5\n")
    site.install("portico-tidy", "", extra="[portico.commands]\ntidy = acme_command:tidy\n")
    importlib.invalidate_caches()
    (found,) = (command for command in portico_host.commands() if command.name == "tidy")
    assert found.load() == 5
    assert capsys.readouterr() == ("", "loud\n")

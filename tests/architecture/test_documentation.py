"""Every port, hook, setting and error has its place in the documentation."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

from portico import errors
from portico.ports import PORTS, PortInfo

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def text_of(page: str) -> str:
    return (DOCS / page).read_text("utf-8")


def page_of(port: PortInfo) -> str:
    words = re.findall(r"[A-Z][a-z]+", port.name)
    return f"plugins/{'-'.join(words).lower()}.md"


@pytest.mark.parametrize("port", PORTS, ids=lambda port: port.name)
def test_each_port_has_a_page_that_names_its_hook_and_table(port):
    page = text_of(page_of(port))
    assert page.startswith(f"# {port.name}\n")
    assert f"`{port.hook}`" in page
    assert f"[{port.table}" in page


@pytest.mark.parametrize("port", PORTS, ids=lambda port: port.name)
def test_the_table_of_ports_links_each_page(port):
    row = next(line for line in text_of("plugins/index.md").splitlines() if f"[{port.name}]" in line)
    assert page_of(port).removeprefix("plugins/") in row
    assert f"`{port.hook}`" in row


def test_the_page_of_settings_is_what_the_settings_classes_say():
    path = Path(__file__).with_name("settings_page.py")
    spec = importlib.util.spec_from_file_location("settings_page", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = text_of("reference/settings.md")
    assert module.page() == written, "write it anew: python tests/architecture/settings_page.py"


def test_the_page_of_errors_lists_each_error_that_is_raised():
    listed = set(re.findall(r"^\| `(\w+)` \|", text_of("reference/errors.md"), re.MULTILINE))
    classes = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.PorticoError)]
    leaves = {kind.__name__ for kind in classes if not any(other.__base__ is kind for other in classes)}
    assert leaves <= listed, f"missing: {sorted(leaves - listed)}"
    assert listed <= {kind.__name__ for kind in classes}, "the page lists an error that does not exist"


def test_links_between_pages_lead_somewhere():
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in [*DOCS.rglob("*.md"), ROOT / "README.md"]
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_the_programs_in_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    programs = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert len(programs) == 2
    for program in programs:
        exec(compile(program, "README.md", "exec"), {"__name__": "__main__"})

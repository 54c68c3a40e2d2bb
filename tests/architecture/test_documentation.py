"""Every port, hook, setting and error has its place in the documentation."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import re
import shutil
from functools import cache
from pathlib import Path

import pytest
from tests.acceptance.pages import pages_with_code
from tests.support.pages import blocks_of, pasted_into

from portico import errors
from portico.plugins import Registration
from portico.ports import PORTS, PortInfo
from portico_cli.failures import describe_error

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


ERRORS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.PorticoError)]
NAMED = [kind for kind in ERRORS if kind is not errors.PorticoError]


def entry_of(error: str) -> str:
    """Return what the page of errors says of one, under the heading that links lead to."""
    found = re.search(rf"^### {error}\n(.*?)(?=^##|\Z)", text_of("reference/errors.md"), re.MULTILINE | re.DOTALL)
    assert found, f"the page of errors needs a heading: ### {error}"
    return found[1]


@pytest.mark.parametrize("error", NAMED, ids=lambda error: error.__name__)
def test_the_page_of_errors_says_what_each_means_who_raises_it_and_what_to_do(error):
    entry = entry_of(error.__name__)
    form = r"\n(?P<means>\w.+?)\n\n- Raised by: (?P<by>.+?)\n- Do: (?P<do>.+?)\n- Exit code: (?P<code>\d)\n+"
    said = re.fullmatch(form, entry, re.DOTALL)
    assert said, f"what it means, then `- Raised by:`, `- Do:` and `- Exit code:`, is the form of each: {entry}"


@pytest.mark.parametrize("error", NAMED, ids=lambda error: error.__name__)
def test_the_page_of_errors_has_the_exit_code_of_the_command_line(error):
    _, _, code = describe_error(error.__new__(error))
    assert f"- Exit code: {code}\n" in entry_of(error.__name__)


def test_the_page_of_errors_has_no_error_that_does_not_exist():
    listed = re.findall(r"^### (\w+)$", text_of("reference/errors.md"), re.MULTILINE)
    assert sorted(listed) == sorted(kind.__name__ for kind in NAMED)


def rows_of(page: str) -> list[list[str]]:
    """Return the cells of the tables of a page."""
    lines = (line for line in text_of(page).splitlines() if line.startswith("| "))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_of_hooks_has_the_hooks_in_the_order_of_the_ports():
    hooks = [row[0].strip("`") for row in rows_of("reference/hooks.md") if row[0].startswith("`portico_")]
    assert hooks == [port.hook for port in PORTS]


@pytest.mark.parametrize("port", PORTS, ids=lambda port: port.name)
def test_the_page_of_hooks_says_what_each_makes_where_it_is_chosen_and_when_it_is_made(port):
    _, makes, chosen, when = next(row for row in rows_of("reference/hooks.md") if row[0] == f"`{port.hook}`")
    assert makes == f"[{port.name}](../{page_of(port)})"
    key = "" if port.key == "use" else f", `{port.key}`"
    assert chosen == (f"`[{port.table}.<name>]`" if port.many else f"`[{port.table}]`{key}")
    assert when


def test_the_page_of_hooks_explains_every_field_of_a_registration():
    explained = {row[0].strip("`") for row in rows_of("reference/hooks.md")}
    fields = {field.name for field in dataclasses.fields(Registration)}
    assert fields <= explained, f"missing: {sorted(fields - explained)}"


def test_links_between_pages_lead_somewhere():
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in [*DOCS.rglob("*.md"), ROOT / "README.md"]
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """Return what links into a page may lead to: its headings, as the site and GitHub write them."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", title).lower() for title in titles)
    return frozenset(re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip()) for title in plain)


def test_links_into_pages_lead_to_a_heading():
    broken = [
        f"{page.relative_to(ROOT)}: {target}#{anchor}"
        for page in [*DOCS.rglob("*.md"), ROOT / "README.md"]
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text("utf-8"))
        if anchor not in anchors_of((page.parent / target) if target else page)
    ]
    assert broken == []


@pytest.mark.parametrize("port", PORTS, ids=lambda port: port.name)
def test_the_drawing_of_the_architecture_has_every_port(port):
    assert re.search(rf"\b{port.name}\b", text_of("explanation/architecture.svg"))


def programs_of_the_readme() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)


def test_the_programs_in_the_readme_run(tmp_path, monkeypatch, capsys):
    shutil.copytree(DOCS / "how-to", tmp_path / "docs")
    monkeypatch.chdir(tmp_path)
    programs = programs_of_the_readme()
    assert len(programs) == 3
    shown = (ROOT / "README.md").read_text("utf-8").partition("```text\nGoal:")[2].partition("```")[0]
    for program in programs:
        exec(compile(program, "README.md", "exec"), {"__name__": "__main__"})
        printed = capsys.readouterr().out
        if program is programs[0]:
            assert "connector" in printed
            assert "write-a-search-connector.md#L" in printed
        elif program is programs[1]:
            assert printed == f"Goal:{shown}"


def test_the_first_program_in_the_readme_has_ten_lines_at_most():
    lines = [line for line in programs_of_the_readme()[0].splitlines() if line.strip()]
    assert len(lines) <= 10, lines


def test_the_readme_has_what_a_newcomer_looks_for():
    text = (ROOT / "README.md").read_text("utf-8")
    for command in ("uv run portico ask", "uv run nox", "portico new connector"):
        assert command in text
    assert "architecture.svg" in text
    picture = text.partition("## How it is built")[2].partition("```text\n")[2].partition("```")[0]
    for word in ("portico_host", "the core", "connectors", "planners", "adapters", "your package"):
        assert word in picture, f"{word!r} is not in the picture, which is to be seen without drawing anything"
    beside = text.partition("## Beside other frameworks")[2].partition("\n## ")[0]
    assert re.search(r"As of \w+ 20\d\d", beside), "the table has no date"
    for other in ("Semantic Kernel", "LangChain", "LlamaIndex", "Haystack", "pydantic-ai", "llm"):
        assert f"| [{other}](" in beside, f"{other} is not in the table"
    assert "better" in beside, "an honest table says where the others are better"


@pytest.mark.parametrize("page", list(pages_with_code()), ids=lambda page: page.stem)
def test_a_page_says_what_to_install_and_where_its_python_goes(page):
    text = page.read_text("utf-8")
    assert re.search(r"^pip install (portico-|uv )", text, re.MULTILINE)
    assert "](../tutorial/first-steps.md#install)" in text or page.parent.name == "tutorial"
    loose = [block for block in blocks_of(text) if block.language == "python" and not block.file]
    assert pasted_into(text) or not loose, f"nothing says where this goes:\n{loose[0].text}"


def test_a_page_hides_nothing_from_its_reader():
    hidden = [page.name for page in DOCS.rglob("*.md") if "invisible-code-block" in page.read_text("utf-8")]
    assert hidden == []

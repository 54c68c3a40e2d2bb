"""Each port has a page for its implementers: members, what runs, settings, errors, and the kit that proves it.

That what the pages show runs and passes its kit is held by `docs/conftest.py` and `test_kits_in_pages.py`.
"""

from __future__ import annotations

import inspect
import re
import runpy
from pathlib import Path

import pytest

import portico
from portico import errors
from portico.ports import PORTS, PortInfo

PLUGINS = Path(__file__).parents[2] / "docs/plugins"
SIGNATURES = runpy.run_path(str(Path(__file__).parent / "port_signatures.py"))

each_port = pytest.mark.parametrize("port", PORTS, ids=lambda port: port.name)


def page_of(port: PortInfo) -> str:
    return SIGNATURES["page_of"](port).read_text("utf-8")


def section(page: str, heading: str) -> str:
    """Return what stands under a heading."""
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, f"the page needs a section: ## {heading}"
    return found[1]


def members_of(port: PortInfo) -> list[str]:
    """Return the members of a port as its page has them: `name`, `select(functions, context, limit)`."""
    protocol = vars(getattr(portico, port.name))
    names = [name for name in dict.fromkeys([*protocol.get("__annotations__", {}), *protocol]) if name[0] != "_"]
    return [
        f"{name}({', '.join(list(inspect.signature(protocol[name]).parameters)[1:])})"
        if inspect.isfunction(protocol.get(name))
        else name
        for name in names
    ]


@each_port
def test_the_pages_have_one_order(port):
    headings = re.findall(r"^## (.+)$", page_of(port), re.MULTILINE)
    shared = ["What it has", "Register it", "Errors and pitfalls", "Test it"]
    assert [heading for heading in headings if heading in shared] == shared


@each_port
def test_a_page_says_of_every_member_of_its_port_what_it_takes_and_gives(port):
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", section(page_of(port), "What it has"), re.MULTILINE)
    assert [member for member, _ in rows] == members_of(port)
    assert all(said.endswith(".") for _, said in rows), "each in a sentence"


@each_port
def test_a_page_has_the_types_of_its_port(port):
    page, script = page_of(port), "tests/architecture/port_signatures.py"
    assert page == SIGNATURES["with_signatures"](page, port), f"run `python {script}`, which writes them"
    assert SIGNATURES["SENTENCE"] in section(page, "What it has")


@each_port
def test_a_page_shows_an_implementation_its_registration_and_its_settings(port):
    page = page_of(port)
    first = re.search(r"^class \w+(?!\w*\(Protocol\)).*:$", page, re.MULTILINE).start()
    assert first < page.index("\n## Register it\n"), "what is registered is shown first"
    registering = section(page, "Register it")
    assert f"def {port.hook}(" in registering
    assert re.search(r"settings", registering, re.IGNORECASE)


@each_port
def test_a_page_names_the_errors_that_are_to_be_raised(port):
    named = set(re.findall(r"\b[A-Z]\w+", section(page_of(port), "Errors and pitfalls")))
    known = {name for name in vars(errors) if name[0].isupper()} | {"Mismatch", "ValueError"}
    assert named & known or port.name == "Runner", "which errors, of those that there are?"


@each_port
def test_a_page_shows_the_kit_that_proves_an_implementation(port):
    page = page_of(port)
    testing = section(page, "Test it")
    assert re.search(r"`portico_testkit\.\w+\.\w+Kit`", page), "where is the kit?"
    assert re.search(r"^class Test\w+\(\w+Kit\)", testing, re.MULTILINE)

"""Names of functions that a plan spells otherwise than the catalogue does."""

from __future__ import annotations

import pytest

from portico._functions.functions import FunctionSpec
from portico._plans.plan import Plan, PlanTemplate
from portico._plans.xml_form.reading import XmlPlan

MANUALS = {
    name: FunctionSpec(name, "", {}, {})
    for name in ["Writer-Poem", "echo", "A-Twice", "B-Twice", "Writer-Strasse", "Short-Long_Poem", "X_y", "X-y"]
}


def called(written: str, catalogue: dict[str, FunctionSpec] | None) -> str | Plan | PlanTemplate:
    """Return what the step of a plan calls."""
    return XmlPlan.read(f"<plan><function.{written}/></plan>", catalogue).plan.steps[0].function


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Writer.Poem", "Writer-Poem"),
        ("Writer-Poem", "Writer-Poem"),
        ("Writer.Straße", "Writer-Strasse"),
        ("WRITER.poem", "Writer-Poem"),
        ("writer_poem", "Writer-Poem"),
        ("_GLOBAL_FUNCTIONS_.Writer-Poem", "Writer-Poem"),
        ("poem", "Writer-Poem"),
        ("echo", "echo"),
        ("ECHO", "echo"),
        ("_GLOBAL_FUNCTIONS_.Echo", "echo"),
        ("short.long.poem", "Short-Long_Poem"),
        ("long_poem", "Short-Long_Poem"),
        ("X.y", "X-y"),
        ("X_y", "X_y"),
        ("A.twice", "A-Twice"),
    ],
)
def test_a_function_is_found_in_any_case_and_without_its_plugin(written: str, name: str) -> None:
    assert called(written, MANUALS) == name


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Twice", "Twice"),  # of two plugins
        ("x_Y", "x_Y"),  # two functions, but for the hyphen
        ("Other.Poem", "Other-Poem"),
        ("Other.echo", "Other-echo"),
        ("a.b.c", "a.b.c"),
        ("_GLOBAL_FUNCTIONS_.nothing", "nothing"),
        ("_global_functions_.echo", "_global_functions_-echo"),
        ("", ""),
        (".", "-"),
    ],
)
def test_what_no_function_is_called_stays_as_it_is_written_but_for_the_dot(written: str, name: str) -> None:
    assert called(written, MANUALS) == name


@pytest.mark.parametrize("written", ["Writer.Poem", "poem", "writer-poem"])
def test_without_a_catalogue_no_name_is_another(written: str) -> None:
    assert called(written, None) == called(written, {}) == written.replace(".", "-")

"""A field that a value has in other letters, or does not have, is logged once for its place in the template."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import pytest

from portico.plugins import FunctionCall
from portico_templates.handlebars.language import HandlebarsTemplates

LOGGER = "portico_templates.handlebars"


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    link: str | None = None


RESULT = Result("Ada")
MAPPING = {"name": "Ada", "link": None}


@pytest.fixture
def logged(caplog, kernel):
    """Render twice, and return the warnings."""

    async def logged(source, **variables):
        template = HandlebarsTemplates().compile(source)
        with caplog.at_level(logging.INFO, LOGGER):
            for _ in range(2):
                await template.render(variables, call=FunctionCall.caller(kernel, variables))
        return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]

    return logged


@pytest.mark.parametrize(
    "source",
    [
        "{{#each results}}{{Name}}{{/each}}",
        "{{#each results}}{{this.Name}}{{/each}}",
        "{{#each results as |item|}}{{item.Name}}{{/each}}",
        "{{#each results}}{{#if true}}{{../results.[0].Name}}{{/if}}{{/each}}",
        "{{results.[0].Name}}",
        "{{@root.results.[1].Name}}",
        "{{#each Results}}{{name}}{{/each}}",
        "{{#with results.[0]}}{{Name}}{{/with}}",
        "{{#each (Tools-results 'x')}}{{Name}}{{/each}}",
    ],
)
@pytest.mark.parametrize("item", [RESULT, MAPPING], ids=["an object", "a mapping"])
async def test_a_name_in_other_letters_is_logged_once_for_its_place(source, item, logged):
    [message] = await logged(source, results=[item, item])
    written = "Results" if "Results" in source else "Name"
    assert f"{written!r}" in message
    assert f"{written.lower()!r}" in message
    assert "prompt, line 1, column " in message


async def test_each_place_is_logged(logged):
    assert len(await logged("{{item.Name}} {{item.Link}} {{item.Name}}", item=MAPPING)) == 3


async def test_a_field_that_an_object_does_not_have_is_logged_with_those_that_it_has(logged):
    [message] = await logged("{{#each results}}{{title}}{{/each}}", results=[RESULT])
    assert "'title'" in message
    assert "name, link" in message


@pytest.mark.parametrize(
    "source",
    [
        "{{#if item.Name}}yes{{else}}no{{/if}}",
        "{{#unless item.Name}}no{{/unless}}",
        "{{#with item.Name}}{{this}}{{else}}none{{/with}}",
        "{{#each item.Names}}{{this}}{{else}}none{{/each}}",
        "{{#with item}}{{#Name}}{{this}}{{/Name}}{{/with}}",
        "{{lookup item 'Name'}}",
        "{{item.link}}",
        "{{item.name.length}}",
        "{{Tools-today}} {{#with item}}{{Tools-today}}{{/with}}",
        "{{absent}} {{item.name.absent}} {{@absent}} {{absent.field}}",
    ],
)
@pytest.mark.parametrize("item", [RESULT, MAPPING], ids=["an object", "a mapping"])
async def test_a_condition_and_an_absent_value_are_not_logged(source, item, logged):
    assert not await logged(source, item=item)


async def test_a_key_that_a_mapping_does_not_have_is_not_logged(logged):
    assert not await logged("{{#each results}}{{title}}{{/each}}", results=[MAPPING])


async def test_a_hidden_field_is_logged_with_what_to_do(logged):
    [message] = await logged("{{#each results}}{{_id}}{{/each}}", results=[{"_id": 1}])
    assert "Names that begin with '_' are hidden: pass '_id' under another name." in message

"""What begins with ``_`` is hidden from a template, by path and where a whole value is written, in each language."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from portico import Kernel, function
from portico_templates.handlebars.language import HandlebarsTemplates
from portico_templates.jinja2.language import Jinja2Templates


@dataclass(frozen=True, order=True)
class Person:
    name: str
    _token: str = "SECRET"
    friends: list[Any] = field(default_factory=list, compare=False)


@dataclass
class City:
    name: str
    _token: str = "SECRET"


@function
def found() -> Person:
    """Find a person."""
    return Person("Ada", friends=[])


PERSON = Person("Ada", friends=[City("Bath"), {"_token": "SECRET", "of": (City("Ely"),)}])
SHOWN = '{"name": "Ada", "friends": [{"name": "Bath"}, {"of": [{"name": "Ely"}]}]}'
MAPPING = {"name": "Ada", "_token": "SECRET"}
VALUES: dict[str, Any] = {"p": PERSON, "m": MAPPING, "l": [PERSON], "_mine": "mine", "q": Person("Ada", "other")}

TEMPLATES = {
    "semantic-kernel": {
        "{{$p}}": SHOWN,
        "{{$l}}": f"[{SHOWN}]",
        "{{$m}}": '{"name": "Ada"}',
        "{{$_mine}}": "mine",
        "{{found}}": '{"name": "Ada", "friends": []}',
    },
    "handlebars": {
        "{{p}}": SHOWN,
        "{{l}}": f"[{SHOWN}]",
        "{{json p}}": SHOWN,
        "{{json m}}": '{"name": "Ada"}',
        "{{_mine}}": "mine",
        "{{#each m}}{{@key}}={{this}}{{/each}}": "name=Ada",
        "{{#each p}}{{@key}} {{/each}}": "name friends ",
        "{{m._token}}{{p._token}}{{lookup m '_token'}}{{#with m}}{{_token}}{{/with}}{{get 'm' '_token'}}": "",
        "{{get '_mine'}}": "mine",
        "{{found}}": '{"name": "Ada", "friends": []}',
        "{{#with (found)}}{{_token}}{{/with}}": "",
        "{{concat m}}{{array m}}": '{"name": "Ada"}[{"name": "Ada"}]',
    },
    "jinja2": {
        "{{ p }}": SHOWN,
        "{{ l }}": f"[{SHOWN}]",
        "{{ m }}": '{"name": "Ada"}',
        "{{ _mine }}": "mine",
        "{{ found() }}": '{"name": "Ada", "friends": []}',
        "{{ '%s' % p }}": SHOWN,
    },
}


def kernel() -> Kernel:
    made = Kernel(template_languages=[HandlebarsTemplates(), Jinja2Templates()])
    made.add_function(found)
    return made


@pytest.mark.parametrize(
    ("language", "source", "text"),
    [(language, source, text) for language, cases in TEMPLATES.items() for source, text in cases.items()],
)
async def test_a_value_is_written_without_what_is_hidden_in_it(language: str, source: str, text: str) -> None:
    assert await kernel().render_prompt(source, VALUES, language=language) == text

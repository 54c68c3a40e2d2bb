"""Jinja2Templates does what every TemplateLanguage must."""

import pytest

from portico_templates.jinja2.language import Jinja2Templates
from portico_testkit.template_cases import REACHING
from portico_testkit.template_language import TemplateLanguageKit


class TestJinja2Templates(TemplateLanguageKit):
    variables = "[{{ a }}|{{ b }}]"
    by_name = "({{ Tools.join(left=a, right=b) }})"
    by_place = "({{ Tools.join(a, right=b) }})"
    two_calls = "{{ Tools.first(text=a) }}{{ Tools.second(text=b) }}"
    unknown_function = "Dear friend,\n\n  {{ Tools.nope(text=a) }}\n"
    malformed = ("{% if a %}", "{{ a", "{% for x %}{% endfor %}", "{{ a b }}", "{% nothing %}", "{{ a|nothing }}")
    message = '<message role="user">{{ a }}{{ b }}</message>'
    attribute = '<message role="{{ a }}">Hello</message>'
    around = '<{{ a }}age role="system">{{ b }}<message role="user">Hello</message>'
    called_in_message = '<message role="user">{{ Tools.join(left=a, right=b) }}</message>'
    reaching = (
        *REACHING,
        "{{ a|attr('__class__') }}",
        "{{ a['__class__'] }}",
        "{{ '%s'|format(a.__class__) }}",
        "{{ '{0.__class__}'.format(a) }}",
        "{{ a|map(attribute='__class__')|list }}",
        "{{ [a]|map(attribute='run')|list }}",
        "{{ [a]|sort(attribute='run') }}",
        "{{ self.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ range.__globals__ }}",
        "{{ a.run() }}",
        "{{ a() }}",
        "{% include '/etc/passwd' %}",
        "{% import '../secrets' as s %}{{ s }}",
        "{{ ''.join.__self__ }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ (a|string).__class__ }}",
        "{% macro m() %}{% endmacro %}{{ m._environment }}{{ m.__globals__ }}",
        "{% for x in [1] %}{{ loop._iterable }}{{ loop.__class__ }}{% endfor %}",
        "{{ namespace.__init__.__globals__ }}{{ namespace() }}",
    )

    @pytest.fixture
    def template_language(self) -> Jinja2Templates:
        return Jinja2Templates()

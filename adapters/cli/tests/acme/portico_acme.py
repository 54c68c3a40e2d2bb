"""The plugin module of `portico-acme`, a package made up for the tests of `portico doctor`, which vary its text."""

from portico.plugins import Registration


def portico_text_searches():
    return [Registration(name="acme", factory="portico_acme_search:Search", settings=None, summary="Acme.")]

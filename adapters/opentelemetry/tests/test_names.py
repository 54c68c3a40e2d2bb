"""The names are those of the conventions."""

from __future__ import annotations

from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics

from portico_opentelemetry import _names

from .conftest import KNOWN, OPERATIONS


def test_every_attribute_is_one_of_the_conventions_or_our_own() -> None:
    texts = {value for name, value in vars(_names).items() if name.isupper() and isinstance(value, str)}
    metrics = {value for name, value in vars(gen_ai_metrics).items() if name.startswith("GEN_AI_CLIENT")}
    theirs = KNOWN | metrics
    others = {text for text in texts - theirs - OPERATIONS.keys() if not text.startswith("portico.")}
    assert others == {_names.SCOPE}


def test_operations_and_providers_have_the_names_of_the_conventions() -> None:
    known = {member.value for member in vars(gen_ai_attributes)["GenAiOperationNameValues"]}
    # The package is older than the operation; the conventions have it since they have a repository of their own.
    assert OPERATIONS.keys() - known == {_names.PLAN}
    providers = {member.value for member in vars(gen_ai_attributes)["GenAiProviderNameValues"]}
    assert {*_names.PROVIDERS.values(), *_names.CLOUDS.values()} <= providers

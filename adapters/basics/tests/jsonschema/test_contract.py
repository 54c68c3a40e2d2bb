"""JsonschemaValidator does what every SchemaValidator must."""

import pytest

from portico_basics.jsonschema.validator import JsonschemaValidator
from portico_testkit.schema_validator import SchemaValidatorKit


class TestJsonschemaValidator(SchemaValidatorKit):
    complete = True

    @pytest.fixture
    def schema_validator(self) -> JsonschemaValidator:
        return JsonschemaValidator()

"""What core brings for a port does what every implementation of it must."""

import pytest

from portico._schema.validate import PlainSchemaValidator
from portico_testkit.schema_validator import SchemaValidatorKit


class TestPlainSchemaValidator(SchemaValidatorKit):
    @pytest.fixture
    def schema_validator(self) -> PlainSchemaValidator:
        return PlainSchemaValidator()

"""All of JSON Schema 2020-12 for Portico, on jsonschema."""

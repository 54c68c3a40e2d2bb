"""What portico-jsonschema registers."""

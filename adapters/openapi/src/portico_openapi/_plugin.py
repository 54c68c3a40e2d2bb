"""What portico-openapi registers."""

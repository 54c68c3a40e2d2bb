"""What portico-openai registers."""

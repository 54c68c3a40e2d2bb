"""What portico-llamacpp registers."""

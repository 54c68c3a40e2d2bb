"""What portico-brave registers."""

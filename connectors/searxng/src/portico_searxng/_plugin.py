"""What portico-searxng registers."""

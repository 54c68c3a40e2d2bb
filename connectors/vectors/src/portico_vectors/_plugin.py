"""What portico-vectors registers."""

"""What portico-google registers."""

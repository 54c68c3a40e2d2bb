"""What portico-bing registers."""

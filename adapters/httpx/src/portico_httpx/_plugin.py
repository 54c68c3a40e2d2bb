"""What portico-httpx registers."""

"""What portico-tavily registers."""

"""Search the web with Tavily and Portico."""

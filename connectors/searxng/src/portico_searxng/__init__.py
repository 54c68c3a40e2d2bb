"""Search the web with Portico through your own SearXNG."""

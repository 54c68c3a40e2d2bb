"""Search the web with Portico through a SearXNG of your own."""

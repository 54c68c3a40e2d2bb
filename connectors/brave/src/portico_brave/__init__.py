"""Search the web with Brave and Portico."""

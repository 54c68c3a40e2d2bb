"""Search with Google Custom Search and Portico."""

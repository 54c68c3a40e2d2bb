"""Search a folder of documents with Portico."""

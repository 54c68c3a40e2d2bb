"""The text search `acme` for Portico."""

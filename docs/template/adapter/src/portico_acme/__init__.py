"""The chat service `acme` for Portico."""

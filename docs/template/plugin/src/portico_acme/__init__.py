"""The function plugin `acme` for Portico."""

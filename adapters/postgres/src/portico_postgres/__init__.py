"""Vectors and the journal of pursuits of Portico in PostgreSQL."""

"""Vectors and the journal of runs of Portico in PostgreSQL."""

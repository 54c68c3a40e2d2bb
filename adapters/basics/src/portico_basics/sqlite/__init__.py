"""The journal of runs of Portico in SQLite."""

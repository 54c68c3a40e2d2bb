"""The journal of pursuits of Portico in SQLite."""

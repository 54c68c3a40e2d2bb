"""The rewriting behind `portico.strict`."""

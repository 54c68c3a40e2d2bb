"""Choosing, of many functions, the few that a model is told of: by words and by vectors, kept in step with a store."""

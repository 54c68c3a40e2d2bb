"""There is nothing to set: what a type is in JSON, its author says in the class."""

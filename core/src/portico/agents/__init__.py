"""Agents: a name, instructions and functions, in a conversation that is kept."""

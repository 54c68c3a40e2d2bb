"""A kernel as a server of the protocol."""

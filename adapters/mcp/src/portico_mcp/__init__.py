"""The Model Context Protocol: servers' tools as functions, and Portico as a server."""

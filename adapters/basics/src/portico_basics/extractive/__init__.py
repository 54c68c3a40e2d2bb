"""A chat service for Portico that answers by quoting its sources."""

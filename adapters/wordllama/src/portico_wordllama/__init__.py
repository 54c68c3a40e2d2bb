"""Embeddings without a key or a network for Portico, on wordllama."""

"""Keeps the embeddings of texts on disk."""

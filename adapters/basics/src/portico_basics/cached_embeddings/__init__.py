"""Keeps the embeddings of texts on disk for Portico, so that none is paid for twice."""

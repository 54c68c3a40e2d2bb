"""Filling a vector store with the embeddings of many texts: here, or in batches by worker processes."""

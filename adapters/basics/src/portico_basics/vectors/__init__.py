"""Search a vector store with Portico: any store, any embeddings, your own records."""

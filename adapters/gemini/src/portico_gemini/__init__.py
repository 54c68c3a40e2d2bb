"""Chat and embeddings of Google's Gemini, for Portico."""

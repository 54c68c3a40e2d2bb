"""Chat and embeddings of OpenAI, and of every service that speaks its protocol, for Portico."""

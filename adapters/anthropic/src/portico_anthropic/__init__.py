"""Chat with Anthropic's Claude, at Anthropic, on Bedrock and on Vertex AI, for Portico."""

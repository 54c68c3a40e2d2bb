"""The Chat Completions API: what OpenAI and every server of its protocol speaks."""

"""The Responses API, OpenAI's own: it has its reasoning, its web search and its errors in other forms."""

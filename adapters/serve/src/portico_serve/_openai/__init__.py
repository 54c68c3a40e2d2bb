"""What clients of the API of OpenAI ask: grounded answers, and an agent."""

"""Who may reach the server, and how much of it."""

"""The pages, written as HTML by the server."""

"""HTTP for connectors (`http`), and the main text of web pages (`pages`, with the extra of that name)."""

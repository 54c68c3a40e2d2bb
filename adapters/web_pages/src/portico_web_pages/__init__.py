"""The main text of web pages for Portico: HTML, PDF and plain text, read with care."""

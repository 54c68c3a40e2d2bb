"""Prompts in Jinja2 for Portico, sandboxed and asynchronous."""

"""Prompts in Handlebars for Portico, with asynchronous helpers."""

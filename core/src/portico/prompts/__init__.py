"""Prompts: the Semantic Kernel template language, and what every template language needs."""

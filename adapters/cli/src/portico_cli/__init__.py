"""Portico: a plugin-based framework for applications on language models."""

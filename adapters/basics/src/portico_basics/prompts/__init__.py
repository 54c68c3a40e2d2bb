"""A directory of prompts as functions of Portico."""

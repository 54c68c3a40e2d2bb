"""A language model on this machine for Portico: llama.cpp in its own process, weights from a file."""

"""A language model on this machine for Portico: llama.cpp in a process of its own, weights from a file."""

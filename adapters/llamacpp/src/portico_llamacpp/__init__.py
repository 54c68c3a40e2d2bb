"""A language model on this machine for Portico: llama.cpp in the process, weights from a file."""

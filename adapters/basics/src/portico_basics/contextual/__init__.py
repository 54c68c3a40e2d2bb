"""Offers a model the few functions that its conversation is about, of many: for Portico."""

"""Durable pursuits and worker processes for Portico, on DBOS."""

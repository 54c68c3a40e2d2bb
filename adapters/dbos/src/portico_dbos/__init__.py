"""Durable runs and worker processes for Portico, on DBOS."""

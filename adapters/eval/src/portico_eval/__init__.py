"""Measure an application on your own cases: `portico eval CASES`."""

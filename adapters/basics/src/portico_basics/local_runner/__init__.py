"""Runs the steps of Portico's plans in this process, so many at a time."""

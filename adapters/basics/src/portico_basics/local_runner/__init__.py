"""Runs the steps of plans in this process, a number of them at a time."""

"""The whole plan at once, in XML: a planner for Portico."""

"""The planner `acme` for Portico."""

"""Plans that cannot be written wrong, one constrained step at a time: a planner for Portico."""

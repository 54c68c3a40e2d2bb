"""Plans as artefacts: what a planner proposes, checked before it runs."""

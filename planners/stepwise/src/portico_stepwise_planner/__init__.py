"""The planner `stepwise`: thought, action, observation."""

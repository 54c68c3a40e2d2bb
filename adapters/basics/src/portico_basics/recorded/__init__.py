"""The planner `recorded`: replay without a model."""

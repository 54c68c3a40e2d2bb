"""An application of a harbour: functions for a trip, a planner that proposes what is recorded, a clerk to chat with."""

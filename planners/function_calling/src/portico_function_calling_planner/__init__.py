"""The planner `function_calling`: the service's own tool calls as steps of a plan."""

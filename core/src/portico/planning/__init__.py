"""What planners that ask a model are made of: the manual in its budget, asking, reading calls, the transcript."""

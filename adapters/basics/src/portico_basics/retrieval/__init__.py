"""The planner `retrieval`: search every source, fuse, answer with citations."""

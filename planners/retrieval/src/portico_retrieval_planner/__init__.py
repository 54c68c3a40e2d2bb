"""The planner `retrieval`: search every source, fuse, answer with citations."""

from portico_retrieval_planner.config import RetrievalSettings
from portico_retrieval_planner.planner import RetrievalPlanner

__all__ = ["RetrievalPlanner", "RetrievalSettings"]

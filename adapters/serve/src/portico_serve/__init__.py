"""`portico serve`: a page and an API to ask, to agree to a plan, and to watch it run."""

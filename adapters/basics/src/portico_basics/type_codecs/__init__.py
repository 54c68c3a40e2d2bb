"""Types of attrs, pydantic and msgspec in functions and replies of Portico."""

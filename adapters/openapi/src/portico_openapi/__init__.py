"""Functions from OpenAPI documents for Portico, called over httpx."""

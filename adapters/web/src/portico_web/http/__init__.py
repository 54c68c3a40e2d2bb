"""HTTP for connectors of Portico, on httpx."""

"""Several searches of Portico as one, fused by rank."""

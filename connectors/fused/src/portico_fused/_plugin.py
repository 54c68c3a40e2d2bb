"""What portico-fused registers."""

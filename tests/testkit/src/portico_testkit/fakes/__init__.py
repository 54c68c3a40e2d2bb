"""In-memory stand-ins for the ports, correct by the kits."""

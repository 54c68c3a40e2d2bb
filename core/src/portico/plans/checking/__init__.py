"""The parts of the check of plans."""

"""Input and progress at a terminal."""

"""What is printed: for people and for programs."""

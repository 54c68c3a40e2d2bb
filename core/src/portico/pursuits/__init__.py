"""What one pursuit is made of: its loop, its steps, its journal. `portico.pursuit` is the way in."""

"""The client of a server: started, compared with what was approved, and called."""

"""Plans saved as files in a folder."""

"""Plans of Portico kept as files in a folder, to be used again."""

"""New packages: the templates, copied with the forms of another name."""

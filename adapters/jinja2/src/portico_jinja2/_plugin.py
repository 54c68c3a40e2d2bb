"""What portico-jinja2 registers."""

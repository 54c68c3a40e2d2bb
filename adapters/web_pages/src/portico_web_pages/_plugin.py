"""What portico-web-pages registers."""

"""What portico-mediawiki registers."""

"""What portico-type-codecs registers."""

"""What portico-prompt-files registers."""

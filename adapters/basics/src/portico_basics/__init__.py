"""What most applications of Portico use; each sub-package is one of them, and says what it needs."""

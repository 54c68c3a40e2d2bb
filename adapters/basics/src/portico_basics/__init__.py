"""The plugins that most applications of Portico use, a sub-package for each."""

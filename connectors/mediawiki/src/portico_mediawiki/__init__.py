"""Search Wikipedia and every other MediaWiki with Portico; no key."""

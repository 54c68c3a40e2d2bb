"""Search services that speak the Bing v7 interface with Portico."""

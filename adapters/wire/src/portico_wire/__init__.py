"""What adapters of model services share: a connection by the vendor's SDK, streams of events, and errors."""

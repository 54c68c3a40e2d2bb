"""Runs for the page and the API: begun, decided on, watched and described."""

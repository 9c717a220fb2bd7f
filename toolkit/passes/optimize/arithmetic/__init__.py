"""Fewer or cheaper operations for the same numbers."""

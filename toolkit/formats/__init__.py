"""Bytes to domain objects and back."""

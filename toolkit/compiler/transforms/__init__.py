"""Passes that know of no device."""

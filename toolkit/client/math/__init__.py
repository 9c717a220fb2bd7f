"""Arithmetic, special functions, limits of values, moments."""

"""Elementwise work: what follows a primitive inside it, what is compiled together, what NumPy does."""

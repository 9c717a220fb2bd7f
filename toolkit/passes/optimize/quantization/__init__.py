"""Weights and operations in fewer bits."""

"""Losses, and the weights that they and metrics have."""

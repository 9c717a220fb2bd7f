"""Attention as one operation: put together from its parts, with its gradients, and what runs it."""

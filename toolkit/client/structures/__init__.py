"""Structures of values: nests, what stands for several tensors, and what such a value is without its numbers."""

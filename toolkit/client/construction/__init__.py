"""Graphs while they are made: the default graph, operations and tensors, scopes, what is known of shapes and values."""

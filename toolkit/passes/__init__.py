"""Graph to graph: each module is one pass."""

"""Placed graphs split into partitions: what crosses, transfers, what crosses once, when it is received."""

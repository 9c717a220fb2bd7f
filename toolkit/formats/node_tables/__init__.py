"""Very large graphs as columns of numbers: read, ordered, checked, with shapes, cut into parts."""

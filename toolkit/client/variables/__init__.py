"""Variables: how they are made, shared by name, cut into parts, initialized and found."""

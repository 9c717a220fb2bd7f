"""What belongs to a graph in its model: assets, objects, signatures, names in them; models put together of pieces."""

"""Pictures and text of graphs."""

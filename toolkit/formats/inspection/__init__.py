"""What a file is, what is in it, and the report of that."""

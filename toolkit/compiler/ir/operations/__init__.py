"""The kinds of operations that every backend knows, a file for each family."""

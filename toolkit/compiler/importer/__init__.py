"""From a program to a block of operations with known shapes; branches, loops and lists understood."""

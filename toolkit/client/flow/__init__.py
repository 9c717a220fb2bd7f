"""Control flow: conditionals, loops, functions over rows, and the arrays that loops write."""

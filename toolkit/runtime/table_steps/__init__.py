"""The only step of a very large graph, over the columns of its nodes, none of which is made."""

"""Optimizations of graphs as files: `graphmill optimize`. One pass, one file; `table` lists them."""

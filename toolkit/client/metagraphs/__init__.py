"""Graphs for files and from files: MetaGraphs, their collections and signatures, imports."""

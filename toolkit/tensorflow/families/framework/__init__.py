"""Graphs, sessions, variables, functions, SavedModels, and their tools."""

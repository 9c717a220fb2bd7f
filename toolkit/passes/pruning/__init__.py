"""Graphs that get smaller: what fetches and targets need, nodes taken out, models that lose what nothing needs."""

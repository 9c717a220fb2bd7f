"""Clusters: specifications, masters, workers and their services."""

"""Recurrent networks: cells, and layers that run them over the steps of sequences."""

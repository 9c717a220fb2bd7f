"""Tests of steps and batches in actors of a Ray cluster."""

"""Datasets: descriptions of sequences of elements, iterators over them, and the seeds they share."""

"""Sparse tensors: few values of many, and what is done with them."""

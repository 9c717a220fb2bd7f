"""Convolutions, products and norms: folded, fused, taken apart."""

"""Convolutions, products, pools and norms: layouts, patterns, lowering to what oneDNN has primitives for."""

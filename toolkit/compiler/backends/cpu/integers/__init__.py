"""Quantized graphs: rules that rewrite them, exact products of 8-bit numbers."""

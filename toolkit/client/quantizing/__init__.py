"""Graphs that learn, or compute, as their 8-bit forms will: tensors are rounded where those round.

Source: Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
2018.
"""

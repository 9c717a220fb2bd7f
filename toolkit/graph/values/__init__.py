"""Small values known before running: what shape functions need of `shape`, `axis`, `paddings` inputs.

A value is a number or (nested) lists of numbers; elements that are not known are None, as when a shape with an
unknown batch size is sliced and packed again. TensorFlow gets the same from constant folding and partial shape
evaluation while it builds a graph (its C++ shape refiner).
"""

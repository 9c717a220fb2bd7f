"""Kernels of control flow and function calls, and of the ops that hold a graph together."""

"""Kernels for GPUs as a small typed IR: built in Python, written as PTX, and run on the CPU as a SIMT machine.

SIMT is how a GPU executes: many threads run one program, grouped in warps of 32 that exchange registers and in blocks
that share memory and meet at barriers.
"""

"""The device that needs no hardware: an address space of its own over host memory, strict about what is whose.

Every mistake that a real accelerator would show shows here: a tensor that crosses without a copy, an argument that
should have stayed in host memory, a result that nobody fetched back. Its kernels are the CPU's, through copies.
"""

"""The backend of every device that brings kernels and no code generator: one Python function that calls the kernels.

What is gained over running node by node is what the importer does: constants are made once, branches and loops are
Python's own, and nothing is looked up in a step. It looks into no tensor but those that decide, which are in host
memory.
"""

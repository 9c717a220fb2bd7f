"""Libraries of NVIDIA's where they are better than made kernels: cuBLASLt for products, cuDNN for convolutions.

`base` is what is asked of them, `cublaslt` and `cudnn_graphs` ask the libraries, `fake` does the same in NumPy as work
of the fake driver's streams. Where a library is missing, or has no plan for a configuration, kernels of our own run.
"""

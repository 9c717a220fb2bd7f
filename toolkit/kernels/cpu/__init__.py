"""CPU kernels over NumPy: the definition of each op; one module per op family."""

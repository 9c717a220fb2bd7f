"""What kernels of GPUs are made of: positions, strided copies, rows and sums of threads, numbers of each type."""

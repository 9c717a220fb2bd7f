"""oneDNN through its C API: the fast kernels of the CPU. Absent without libdnnl; everything then runs in NumPy."""

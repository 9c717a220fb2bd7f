"""Programs for x86-64: oneDNN's primitives, LLVM's machine code, NumPy, in one generated function."""

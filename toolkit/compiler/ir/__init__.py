"""What the compiler works on: values, operations, blocks, and what must hold between them."""

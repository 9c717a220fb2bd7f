"""What kernels make of bytes and bytes of: examples, summaries, pictures, sounds, hashes, expressions, texts."""

"""Products of 16-bit and 8-bit factors: `--precision bf16`, `fp16` and `fp8`."""

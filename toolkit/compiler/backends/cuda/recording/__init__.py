"""Steps as CUDA graphs: recorded once, then replayed by one call."""

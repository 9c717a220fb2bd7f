"""Training: optimizers, learning rates, the global step, averages, savers, queue runners."""

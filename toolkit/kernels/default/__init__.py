"""Kernels that every device with a memory of its own has without writing them (TensorFlow's DEVICE_DEFAULT).

Constants, transfers, and what only hands its input on: these look at no number, so all that they need is the device's
memory.
"""

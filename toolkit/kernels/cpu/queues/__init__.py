"""Kernels of queues, barriers and staging areas."""

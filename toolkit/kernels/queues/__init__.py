"""Queues, barriers, staging areas and accumulators: the resources behind the ops in `toolkit.kernels.cpu`.

None of them blocks a thread: an operation that cannot go on is kept as an attempt, and whoever changes the
resource moves the waiting attempts on and calls their callbacks.
"""

"""What a run may use: memory, time, the size of one tensor."""

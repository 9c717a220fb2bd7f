"""What graphs cost, and views of that: operations, parameters, bytes, memory at the peak."""

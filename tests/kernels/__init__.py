"""Tests of kernels. `op_suite` compares any op on any device with TensorFlow, one row a case."""

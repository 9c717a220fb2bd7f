"""Protocol buffer schemas, wire-compatible with TensorFlow 2.21, and the op registry data."""

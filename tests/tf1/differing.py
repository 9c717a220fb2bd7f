"""Calls whose nodes are not TensorFlow's, and why. The test fails when one of them is the same by now."""

DIFFERING: dict[str, str] = {
    "tf.nn.zero_fraction(f(2))": "TensorFlow 2.21 counts in two ways, by a cond; the ratio is the same",
    "tf.nn.zero_fraction(i(2), name='n')": "as above",
    "tf.reduce_sum([1.0, 2.0])": "TensorFlow converts a plain value twice, once for its rank; here once",
    "f(4)[i():]": "the end is packed by TensorFlow from a constant, here it is a constant",
    "tf.convert_to_tensor([[f(), 1.0], [2.0, 3.0]])": "TensorFlow has tried the name of a constant before",
}

"""What the expressions of tests/tf1/calls and tests/tf1/dropped may use. Python 3.7 runs this, too."""


def scope(tf):
    """Names for an expression: `tf`, `np`, and placeholders f(2, 3), d, i, l, b, s, c of a type and a shape."""
    import numpy as np

    def of(dtype):
        return lambda *sizes: tf.placeholder(dtype, list(sizes), name="x")

    return {
        "tf": tf, "np": np, "f": of(tf.float32), "d": of(tf.float64), "i": of(tf.int32), "l": of(tf.int64),
        "b": of(tf.bool), "s": of(tf.string), "c": of(tf.complex64),
    }  # fmt: skip


def serialized_graph(tf, code):
    """The serialized GraphDef of the graph that an expression, or lines of code, make."""
    graph = tf.Graph()
    with graph.as_default():
        exec(compile(code, "<call>", "exec"), scope(tf))
    return graph.as_graph_def().SerializeToString()

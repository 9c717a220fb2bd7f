"""What the expressions of tests/tf1/calls and tests/tf1/dropped may use. Python 3.7 runs this, too."""


def scope(tf):
    """Names for an expression: `tf`, `np`, placeholders f(2, 3), d, i, l, b, s, c of a type and a shape, and
    internal("python.ops.x"), a module of TensorFlow's that is not public."""
    import importlib

    import numpy as np

    def internal(dotted):
        if not tf.__name__.startswith("toolkit"):
            return importlib.import_module("tensorflow." + dotted)
        from toolkit.tensorflow import modules

        return modules.module(dotted)

    def of(dtype):
        return lambda *sizes: tf.placeholder(dtype, list(sizes), name="x")

    return {
        "tf": tf, "np": np, "f": of(tf.float32), "d": of(tf.float64), "i": of(tf.int32), "l": of(tf.int64),
        "b": of(tf.bool), "s": of(tf.string), "c": of(tf.complex64), "internal": internal,
    }  # fmt: skip


def serialized_graph(tf, code):
    """The serialized GraphDef of the graph that an expression, or lines of code, make."""
    graph = tf.Graph()
    with graph.as_default():
        exec(compile(code, "<call>", "exec"), scope(tf))
    return graph.as_graph_def().SerializeToString()


def values(tf, code):
    """What lines of code leave in `result`, as flat lists of numbers and texts, and the names of their variables.

    Tensors are run in a session whose variables have values that follow from their names.
    """
    import zlib

    import numpy as np

    with tf.Graph().as_default():
        names = scope(tf)
        exec(compile(code, "<call>", "exec"), names)
        variables = sorted(tf.global_variables(), key=lambda variable: variable.name)
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
            for variable in variables:
                drawn = np.random.RandomState(zlib.crc32(variable.name.encode()) % 2**31)
                if variable.dtype.base_dtype.is_floating:
                    shape, dtype = variable.get_shape().as_list(), variable.dtype.base_dtype.as_numpy_dtype
                    variable.load(drawn.uniform(-0.5, 0.5, shape).astype(dtype), session)
            found = []
            for each in _leaves(names["result"]):
                is_tensor = hasattr(each, "graph") and hasattr(each, "dtype")
                found.append(_plain(session.run(each) if is_tensor else each))
    return {"values": found, "variables": [variable.name for variable in variables]}


def _leaves(structure):
    if isinstance(structure, dict):
        structure = [structure[key] for key in sorted(structure)]
    if isinstance(structure, (list, tuple)):
        return [leaf for item in structure for leaf in _leaves(item)]
    return [structure]


def _plain(value):
    """A value as JSON can hold it: [shape, numbers], or a text."""
    import numpy as np

    array = np.asarray(value)
    if array.dtype.kind in "biuf":
        return [list(array.shape), [float(item) for item in array.ravel()]]
    return str([item.decode() if isinstance(item, bytes) else str(item) for item in array.ravel()])

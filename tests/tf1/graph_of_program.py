"""Run by an interpreter with TensorFlow: `graph_of_program.py PROGRAM OUT [ARGUMENTS...]` runs a program.

The GraphDef of the largest graph that it opened a session with, as it is at the end, goes to the file OUT. TensorFlow
is 1.15 (Python 3.7) or a later one, as tensorflow.compat.v1.
"""

import os
import runpy
import sys
import warnings
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
warnings.simplefilter("ignore")


def use_1_15():
    """Seeds that nobody gives count up from 0, as in later releases; 1.15 itself took the number of nodes so far."""
    from tensorflow.python.framework import random_seed

    given, counts = random_seed.get_seed, {}

    def get_seed(op_seed):
        from tensorflow.python.framework import ops

        graph = ops.get_default_graph()
        if op_seed is None and graph.seed is not None:
            op_seed = counts.setdefault(graph, 0)
            counts[graph] += 1
        return given(op_seed)

    random_seed.get_seed = get_seed


def main():
    program, out = sys.argv[1:3]
    sys.argv = [program] + sys.argv[3:]  # noqa: RUF005 (as in Python 3.7)
    import tensorflow as tf

    if tf.__version__.startswith("1."):
        use_1_15()
    else:
        tf = sys.modules["tensorflow"] = tf.compat.v1
        tf.disable_v2_behavior()
    from tensorflow.python.client import session

    opened = []
    start = session.BaseSession.__init__

    def remember(self, *arguments, **keywords):
        start(self, *arguments, **keywords)
        opened.append(self.graph)

    session.BaseSession.__init__ = remember
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as leaving:  # tf.app.run
        if leaving.code:
            raise
    graphs = [graph.as_graph_def() for graph in opened] or [tf.get_default_graph().as_graph_def()]
    Path(out).write_bytes(max(graphs, key=lambda graph: len(graph.node)).SerializeToString())


if __name__ == "__main__":
    main()

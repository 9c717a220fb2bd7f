"""How the graph of a program is compared with TensorFlow's."""

from __future__ import annotations

from tests.tf1.node_oracle import difference
from tests.tf1.programs import Record

#: programs whose graphs differ from TensorFlow's, and why
DIFFERING: dict[str, str] = {
    "estimator_canned": "it makes nine graphs; the largest is one that trains in 1.15, and one that evaluates here",
    "custom_gradient_autoencoder": "TensorFlow makes one more Identity of a result, and numbers gradients by process",
    "tensorboard_summaries": "TensorFlow makes the shape [] twice, first of floats",
    "queue_tfrecords": "names of temporary files; TensorFlow makes the shape [] twice, first of floats",
    "style_transfer": "constants are what the first session computed; their last bits are the processor's",
}
#: of these, programs whose constants TensorFlow itself makes anew in every process
CHANGING = frozenset(("queue_tfrecords", "style_transfer"))
#: ops whose names checkpoints, feeds and savers know
_KNOWN_OUTSIDE = ("Variable", "VariableV2", "VarHandleOp", "Placeholder", "PlaceholderWithDefault", "SaveV2")


def without_values(lines: list[str]) -> list[str]:
    """The nodes, of constants not what they hold."""
    return [line.partition(" value=")[0] for line in lines]


def differences(record: Record, got: list[str]) -> list[str]:
    """Lines of a diff; none where the graphs are the same.

    Many functions have made other nodes since 1.15, and those of 2.21 are made here, so of graphs of 1.15 only
    variables, placeholders and savers are compared: what files and callers know them by. What single functions made is
    compared node for node in test_dropped_nodes.
    """
    if record["release"] == "2.21":
        return difference(record["graph"], got)
    return difference(_outside(record["graph"]), _outside(got))


def _outside(lines: list[str]) -> list[str]:
    return sorted(
        line for line in lines if line.partition(" = ")[2].startswith(tuple(f"{op}(" for op in _KNOWN_OUTSIDE))
    )

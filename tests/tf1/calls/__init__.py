"""Calls of TensorFlow's functions that have to make the same nodes here and there, a file for each family.

A file's `CALLS` maps a canonical name (without "tf.") to expressions. What they may use: `tf`, `np`, and placeholders
`f(2, 3)` (float32), `d` (float64), `i` (int32), `l` (int64), `b` (bool), `s` (string), `c` (complex64) of that shape.
Functions that are one op get their calls from the op's definition, in test_nodes.
"""

from pathlib import Path

FOLDER = Path(__file__).resolve().parent

#: functions that have no calls here, and where they are tested
ELSEWHERE: dict[str, str] = dict.fromkeys(
    """
    get_default_graph reset_default_graph op_scope device colocate_with control_dependencies container init_scope
    add_to_collection add_to_collections get_collection get_collection_ref graph_util.import_graph_def is_tensor
    register_tensor_conversion_function get_default_session broadcast_static_shape dimension_value
    dimension_at_index edit_distance make_tensor_proto make_ndarray get_static_value
    """.split(),  # noqa: SIM905 (one line for each would be long)
    "scopes, collections and what returns no tensor: test_framework",
)

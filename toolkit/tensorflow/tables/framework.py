"""Graphs, tensors, sessions, scopes, collections."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.families.framework.graph": """
        Graph GraphKeys get_default_graph reset_default_graph name_scope op_scope device colocate_with
        control_dependencies container init_scope add_to_collection add_to_collections get_collection get_collection_ref
        graph_util.import_graph_def convert_to_tensor constant is_tensor register_tensor_conversion_function
    """,
    "toolkit.tensorflow.families.framework.session": "Session InteractiveSession get_default_session",
    "toolkit.tensorflow.families.platform.compat": """
        compat.as_bytes compat.as_text compat.as_str compat.as_str_any compat.path_to_str compat.integral_types
        compat.real_types compat.complex_types compat.bytes_or_text_types compat.dimension_value
        compat.dimension_at_index compat.forward_compatible compat.forward_compatibility_horizon
    """,
    "toolkit.client.construction.tensor": "Tensor IndexedSlices",
    "toolkit.client.construction.operation": "Operation",
    "toolkit.client.sparse.tensor": "sparse.SparseTensor",
    "toolkit.client.structures.values": "SparseTensorValue",
    "toolkit.graph.dtypes": "dtypes.DType",
    "toolkit.tensorflow.families.framework.types": "dtypes.as_dtype",
    "toolkit.client.construction.tensor_shape": "TensorShape Dimension",
}

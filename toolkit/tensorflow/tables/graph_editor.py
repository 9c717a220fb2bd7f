"""tf.contrib.graph_editor."""

HOMES: dict[str, str] = {
    "toolkit.client.graph_editor.elements": """
        contrib.graph_editor.ControlOutputs contrib.graph_editor.can_be_regex contrib.graph_editor.filter_ops
        contrib.graph_editor.filter_ops_from_regex contrib.graph_editor.filter_ts
        contrib.graph_editor.filter_ts_from_regex contrib.graph_editor.get_consuming_ops
        contrib.graph_editor.get_generating_ops contrib.graph_editor.get_name_scope_ops
        contrib.graph_editor.get_tensors contrib.graph_editor.make_list_of_op contrib.graph_editor.make_list_of_t
        contrib.graph_editor.make_placeholder_from_tensor contrib.graph_editor.make_regex contrib.graph_editor.ph
        contrib.graph_editor.placeholder_name
    """,
    "toolkit.client.graph_editor.walks": """
        contrib.graph_editor.check_cios contrib.graph_editor.compute_boundary_ts
        contrib.graph_editor.get_backward_walk_ops contrib.graph_editor.get_forward_walk_ops
        contrib.graph_editor.get_ops_ios contrib.graph_editor.get_walks_intersection_ops
        contrib.graph_editor.get_walks_union_ops contrib.graph_editor.get_within_boundary_ops
    """,
    "toolkit.client.graph_editor.views": """
        contrib.graph_editor.SubGraphView contrib.graph_editor.select_ops contrib.graph_editor.select_ops_and_ts
        contrib.graph_editor.select_ts contrib.graph_editor.sgv contrib.graph_editor.sgv_scope
    """,
    "toolkit.client.graph_editor.rewiring": """
        contrib.graph_editor.add_control_inputs contrib.graph_editor.remove_control_inputs
        contrib.graph_editor.reroute_ts contrib.graph_editor.swap_ts
    """,
    "toolkit.client.graph_editor.copying": """
        contrib.graph_editor.TransformerInfo contrib.graph_editor.copy
        contrib.graph_editor.copy_with_input_replacements contrib.graph_editor.graph_replace
    """,
    "toolkit.client.graph_editor.reconnecting": """
        contrib.graph_editor.bypass contrib.graph_editor.connect contrib.graph_editor.detach
        contrib.graph_editor.detach_control_inputs contrib.graph_editor.detach_control_outputs
        contrib.graph_editor.detach_inputs contrib.graph_editor.detach_outputs contrib.graph_editor.reroute_inputs
        contrib.graph_editor.reroute_ios contrib.graph_editor.reroute_outputs contrib.graph_editor.swap_inputs
        contrib.graph_editor.swap_ios contrib.graph_editor.swap_outputs
    """,
}

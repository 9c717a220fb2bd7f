"""tf.contrib.graph_editor: which operations are found, and what copies and other inputs compute."""

_MADE = """
ge, g = tf.contrib.graph_editor, tf.get_default_graph()
a = tf.placeholder_with_default(tf.constant([1.0, 2.0], name="value"), [2], name="a")
with tf.name_scope("s"):
    b = tf.multiply(a, a, name="b")
    c = tf.multiply(b, b, name="c")
    d = tf.subtract(c, a, name="d")
    with tf.control_dependencies([c]):
        e = tf.identity(d, name="e")
f, h = tf.unstack(e, name="f")
z = tf.constant([3.0, 4.0], name="z")
names = lambda found: ' '.join(each.name for each in found)
ordered = lambda found: ' '.join(sorted(each.name for each in found))
waits = ge.ControlOutputs(g)
"""
_FOUND: dict[str, list[str]] = {
    "get_forward_walk_ops": [
        "ordered(ge.get_forward_walk_ops([b.op])), ordered(ge.get_forward_walk_ops(b.op, False))",
        "ordered(ge.get_forward_walk_ops([a])), ordered(ge.get_forward_walk_ops(a, False, stop_at_ts=[c]))",
        "ordered(ge.get_forward_walk_ops(c.op, control_outputs=waits, stop_at_ts=[c]))",
        "ordered(ge.get_forward_walk_ops([a.op], within_ops=[b.op, c.op]))",
        "ordered(ge.get_forward_walk_ops(b.op, within_ops_fn=lambda op: op.name < 's/d'))",
    ],
    "get_backward_walk_ops": [
        "ordered(ge.get_backward_walk_ops([d.op])), ordered(ge.get_backward_walk_ops([d], False))",
        "ordered(ge.get_backward_walk_ops(e.op, stop_at_ts=[d])), ordered(ge.get_backward_walk_ops(d.op, True, [b.op, d.op]))",
        "ordered(ge.get_backward_walk_ops(e.op, stop_at_ts=[d], control_inputs=True))",
    ],
    "get_walks_intersection_ops": [
        "ordered(ge.get_walks_intersection_ops(b.op, d.op))",
        "ordered(ge.get_walks_intersection_ops([b], [d], False, False, control_ios=waits))",
    ],
    "get_walks_union_ops": [
        "ordered(ge.get_walks_union_ops(c.op, c.op))",
        "ordered(ge.get_walks_union_ops(c.op, c.op, False, within_ops=[b.op, d.op]))",
    ],
    "get_within_boundary_ops": [
        "ordered(ge.get_within_boundary_ops([a.op, b.op, c.op, d.op], b.op, [d.op]))",
        "ordered(ge.get_within_boundary_ops(g, b.op, [d.op, a.op], inclusive=False, control_ios=waits))",
    ],
    "get_ops_ios": [
        "ordered(ge.get_ops_ios([c.op, d.op]))", "ordered(ge.get_ops_ios([c.op, e.op], control_ios=waits))",
    ],
    "compute_boundary_ts": [
        "[names(found) for found in ge.compute_boundary_ts([b.op, c.op])]",
        "[ordered(found) for found in ge.compute_boundary_ts([c.op, d.op, e.op])]",
        "[names(found) for found in ge.compute_boundary_ts([f.op])]",
    ],
    "check_cios": [
        "str(ge.check_cios()), str(ge.check_cios(True))", "ge.check_cios(control_ios=waits)[1] is waits",
    ],
    "get_consuming_ops": ["names(ge.get_consuming_ops([b]))", "ordered(ge.get_consuming_ops([a, c]))"],
    "get_generating_ops": ["names(ge.get_generating_ops([b, c]))", "names(ge.get_generating_ops(f))"],
    "get_name_scope_ops": ["names(ge.get_name_scope_ops(g, 's'))", "names(ge.get_name_scope_ops([b.op, e.op], 's/'))"],
    "get_tensors": ["names(ge.get_tensors(g))", "len(ge.get_tensors(tf.Graph()))"],
    "make_list_of_op": [
        "names(ge.make_list_of_op(g))", "names(ge.make_list_of_op([b, c.op], ignore_ts=True)), names(ge.make_list_of_op(b.op))",
    ],
    "make_list_of_t": ["names(ge.make_list_of_t(g))", "names(ge.make_list_of_t((b, c.op), ignore_ops=True)), names(ge.make_list_of_t(b))"],
    "can_be_regex": ["ge.can_be_regex('a'), ge.can_be_regex(3)", "ge.can_be_regex(__import__('re').compile('a'))"],
    "make_regex": ["ge.make_regex('s/[bc]').pattern", "ge.make_regex(ge.make_regex('x')).pattern"],
    "filter_ops": ["names(ge.filter_ops(g, True))", "names(ge.filter_ops([b.op, d.op], lambda op: op.type == 'Mul'))"],
    "filter_ops_from_regex": ["names(ge.filter_ops_from_regex(g, 's/[bc]'))", "names(ge.filter_ops_from_regex([b.op], 'x'))"],
    "filter_ts": ["names(ge.filter_ts([b.op, f.op], True))", "names(ge.filter_ts([c.op], lambda t: 'c' in t.name))"],
    "filter_ts_from_regex": ["names(ge.filter_ts_from_regex([b.op, c.op, f.op], 'f|b:0'))", "names(ge.filter_ts_from_regex([c.op], '^c'))"],
    "select_ops": [
        "names(ge.select_ops('s/.*', graph=g)), names(ge.select_ops('^b', graph=g)), names(ge.select_ops('(?#ts)s', graph=g))",
        "names(ge.select_ops(b.op, [c.op, b.op])), names(ge.select_ops('s', graph=g, positive_filter=lambda op: 'c' in op.name))",
        "names(ge.select_ops('s/c', '(?#ops)s/d', graph=g, restrict_ops_regex=True))",
    ],
    "select_ts": [
        "names(ge.select_ts('s/.*', graph=g)), names(ge.select_ts('(?#ops)s', graph=g))",
        "names(ge.select_ts(b, [c, b])), names(ge.select_ts('s/c', '(?#ts)s/d', graph=g, restrict_ts_regex=True))",
    ],
    "select_ops_and_ts": [
        "[names(found) for found in ge.select_ops_and_ts('(?#ts)s/[bc]', d.op, graph=g)]",
        "[names(found) for found in ge.select_ops_and_ts(b, [c.op], 's/e', graph=g)]",
    ],
    "sgv": [
        "[names(part) for view in [ge.sgv(b.op, c.op), ge.sgv('s/', graph=g)] for part in (view.ops, view.inputs, view.outputs)]",
        "[names(part) for part in (ge.sgv(c.op, z).inputs, ge.sgv(c.op, z).outputs, ge.sgv(c.op, z).passthroughs)]",
        "[names(part) for part in (ge.sgv(c.op, z).connected_inputs, ge.sgv(b.op).consumers())]",
        "ge.sgv(c.op, z).is_passthrough(z), ge.sgv(c.op, z).input_index(b), ge.sgv(b.op).find_op_by_name('s/b').name",
        "names(ge.sgv(c.op, d.op).remap_inputs([1]).inputs), names(ge.sgv(c.op, z).remap(None, [1, 0, 1]).outputs)",
        "names(ge.sgv(c.op, z).remap_inputs([1]).remap_default().inputs), names(ge.sgv(b.op).remap_outputs_to_consumers().outputs)",
    ],
    "sgv_scope": ["names(ge.sgv_scope('s', graph=g).ops)", "names(ge.sgv_scope('x', graph=g).ops)"],
    "placeholder_name": ["ge.placeholder_name(), ge.placeholder_name(b)", "ge.placeholder_name(b, 'x'), ge.placeholder_name(b, '', 'p')"],
    "make_placeholder_from_tensor": [
        "ge.make_placeholder_from_tensor(b).name", "ge.make_placeholder_from_tensor(b, 'x', 'p').name, str(ge.make_placeholder_from_tensor(b).shape)",
    ],
    "ph": ["ge.ph(tf.float32, [3]).name, ge.ph(tf.float32, [3]).name", "ge.ph(tf.float32, scope='q').name"],
}  # fmt: skip
_COPY = "ge.copy_with_input_replacements(%s)\nresult = [names(view.ops), names(view.inputs), names(view.outputs)"
VALUES: dict[str, list[str]] = {
    **{
        f"contrib.graph_editor.{name}": [f"{_MADE}result = [{code}]" for code in codes]
        for name, codes in _FOUND.items()
    },
    "contrib.graph_editor.copy": [
        _MADE + "view, info = ge.copy([b.op, c.op])\nresult = [names(t for op in view.ops for t in op.inputs)]",
        _MADE + "other = tf.Graph()\nview, info = ge.copy(ge.sgv(b.op, c.op), other, 'there', 's')\n"
        "result = [names(view.ops), ordered(other.get_operations()), info.transformed(c).name, names(view.outputs)]",
    ],
    "contrib.graph_editor.copy_with_input_replacements": [
        (
            f"{_MADE}view, info = {_COPY % 'ge.sgv(b.op, c.op, d.op), {}'}, info.transformed(d), info.transformed(b.op).name, "
            "info.original(info.transformed(c)).name, str(info.transformed(e)), info.transformed(e, lambda t: t).name]"
        ),
        (
            f"{_MADE}view, info = {_COPY % '[b.op, c.op, d.op, e.op], {a: z}, dst_scope=chr(120), src_scope=chr(115)'}, "
            "info.transformed(e), names(info.transformed(e.op).control_inputs)]"
        ),
        f"{_MADE}ge.copy_with_input_replacements(b.op, {{}}, dst_scope='x')\nview, info = {_COPY % 'b.op, {}, dst_scope=chr(120)'}]",
        (
            f"{_MADE}tf.add_to_collection('mine', c)\ntf.add_to_collection('losses', c)\nge.copy_with_input_replacements("
            "[c.op], {b: z}, dst_scope='x')\nresult = [names(tf.get_collection(key)) for key in ('mine', 'x/mine', 'losses')]"
        ),
    ],
    "contrib.graph_editor.graph_replace": [
        _MADE + "result = [ge.graph_replace(d, {b: z}), ge.graph_replace({'x': d, 'y': [c]}, {a: z}, dst_scope='r')]",
        _MADE + "step = {b: c - d, a: b}\nfor _ in range(2):\n    step = ge.graph_replace(step, step)\n"
        "result = [ge.graph_replace(e, step), ge.graph_replace([e, a], {b: z})]",
    ],
    "contrib.graph_editor.reroute_ts": [
        _MADE + "result = [ge.reroute_ts([z], [b], can_modify=[c.op]), e]",
        _MADE + "result = [ge.reroute_ts(z, a, cannot_modify=[d.op]), ge.reroute_ts([z], [a]), ge.reroute_ts(z, a), e]",
    ],
    "contrib.graph_editor.swap_ts": [
        _MADE + "y = z * 2.0\nresult = [ge.swap_ts([z], [b]), e, y]",
        _MADE + "y = z * 2.0\nresult = [ge.swap_ts([z], [a], can_modify=[d.op, y.op]), e, y]",
    ],
    "contrib.graph_editor.add_control_inputs": [
        _MADE + "ge.add_control_inputs(d.op, z.op)\nresult = [names(d.op.control_inputs), d]",
        _MADE + "ge.add_control_inputs(d.op, [z.op, b.op])\nresult = [ordered(d.op.control_inputs), d]",
    ],
    "contrib.graph_editor.remove_control_inputs": [
        _MADE + "ge.remove_control_inputs(e.op, c.op)\nresult = [names(e.op.control_inputs), e]",
        _MADE
        + "ge.add_control_inputs(e.op, z.op)\nge.remove_control_inputs(e.op, [c.op])\nresult = [names(e.op.control_inputs)]",
    ],
}
for _alias, _name in (
    ("ph", "make_placeholder_from_dtype_and_shape"),
    ("sgv", "make_view"),
    ("sgv_scope", "make_view_from_scope"),
):
    VALUES[f"contrib.graph_editor.{_name}"] = [
        code.replace(f"ge.{_alias}(", f"ge.{_name}(") for code in VALUES[f"contrib.graph_editor.{_alias}"]
    ]

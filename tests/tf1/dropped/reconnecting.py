"""tf.contrib.graph_editor: parts of graphs that change places, are taken off and put behind each other."""

_MADE = """
ge, g = tf.contrib.graph_editor, tf.get_default_graph()
x, y = tf.constant([1.0, 2.0], name="x"), tf.constant([3.0, 5.0], name="y")
a = tf.add(x, y, name="a")
b = tf.multiply(x, y, name="b")
with tf.control_dependencies([b]):
    c = tf.square(a, name="c")
d = tf.negative(b, name="d")
end = tf.subtract(c, d, name="end")
one, other = ge.sgv(a.op), ge.sgv(b.op)
names = lambda found: ' '.join(each.name for each in found)
def now():
    wires = [op.name + ': ' + names(op.inputs) + ' ^' + names(op.control_inputs) for op in g.get_operations()]
    return wires + [names(one.inputs), names(one.outputs), names(other.inputs), names(other.outputs)]
"""
VALUES: dict[str, list[str]] = {
    f"contrib.graph_editor.{name}": [_MADE + f"{code}\nresult = now()" for code in codes]
    for name, codes in (
        ("reroute_inputs", ("ge.reroute_inputs(ge.sgv(c.op), ge.sgv(d.op))", "p, q = ge.reroute_inputs(ge.sgv(d.op), c.op)\none = q")),
        ("swap_inputs", ("ge.swap_inputs(ge.sgv(c.op), ge.sgv(d.op))", "p, q = ge.sgv(d.op), ge.sgv(c.op)\none, other = ge.swap_inputs(p, q)")),
        ("reroute_outputs", ("ge.reroute_outputs(one, other)", "ge.reroute_outputs(ge.sgv(d.op), c.op)")),
        ("swap_outputs", ("ge.swap_outputs(one, other)", "p, q = ge.swap_outputs([b.op], [a.op])\none = q")),
        ("reroute_ios", ("ge.reroute_ios(ge.sgv(c.op), ge.sgv(d.op))", "one, other = ge.reroute_ios(ge.sgv(d.op), ge.sgv(c.op))")),
        ("swap_ios", ("ge.swap_ios(one, other)", "one, other = ge.swap_ios(other, one)")),
        ("detach_control_inputs", ("ge.detach_control_inputs(ge.sgv(c.op))", "ge.detach_control_inputs([c.op, b.op])")),
        ("detach_control_outputs", ("ge.detach_control_outputs(other, ge.ControlOutputs(g))", "ge.detach_control_outputs(ge.sgv(b.op, c.op), ge.ControlOutputs(g))")),
        ("detach_inputs", ("one, fed = ge.detach_inputs(one)\nother = ge.sgv([f.op for f in fed])", "one, fed = ge.detach_inputs([c.op, d.op], control_inputs=True)")),
        ("detach_outputs", ("one, fed = ge.detach_outputs(one)", "one, fed = ge.detach_outputs(ge.sgv(b.op, d.op), ge.ControlOutputs(g))")),
        ("detach", ("s, before, behind = ge.detach(ge.sgv(c.op), control_ios=ge.ControlOutputs(g))\none = s", "s, before, behind = ge.detach(other)")),
        ("connect", ("ge.connect(ge.sgv(d.op), ge.sgv(c.op))", "one, other = ge.connect(ge.sgv(c.op), ge.sgv(d.op), disconnect_first=True)")),
        ("bypass", ("one, fed = ge.bypass(ge.sgv(c.op))", "one, fed = ge.bypass([d.op])")),
    )
}  # fmt: skip

"""tf.saved_model: what adds nodes."""

from tests.tf1.calls import separated

_VARIABLE = "v = tf.get_variable('v', [2])\n"
_BUILD = (
    "import tempfile, os\n"
    "v = tf.get_variable('v', [2])\nx = f(3, 2)\ny = tf.add(x, v, name='y')\n"
    "sess = tf.Session()\nsess.run(tf.global_variables_initializer())\nfolder = os.path.join(tempfile.mkdtemp(), 'm')\n"
)

CALLS: dict[str, list[str]] = {
    "saved_model.main_op.main_op": [_VARIABLE + "tf.saved_model.main_op.main_op()", "tf.saved_model.main_op.main_op()"],
    "saved_model.main_op_with_restore": [
        _VARIABLE + "tf.saved_model.main_op_with_restore(tf.no_op(name='restore'))",
        "o = tf.no_op(name='restore')\ntf.saved_model.main_op.main_op_with_restore(o)",
    ],
    "saved_model.simple_save": separated(
        f"""
{_BUILD}tf.saved_model.simple_save(sess, folder, {{'x': x}}, {{'y': y}})
---
{_BUILD}tf.saved_model.simple_save(sess, folder, {{'x': x}}, {{'y': y, 'v': v}}, legacy_init_op=tf.no_op(name='o'))
"""
    ),
    "saved_model.load": separated(
        f"""
{_BUILD}tf.saved_model.simple_save(sess, folder, {{'x': x}}, {{'y': y}})
with tf.Graph().as_default():
  with tf.Session() as other:
    tf.saved_model.load(other, ['serve'], folder)
---
{_BUILD}tf.saved_model.simple_save(sess, folder, {{'x': x}}, {{'y': y}})
tf.saved_model.loader.load(sess, ['serve'], folder, import_scope='again')
"""
    ),
}

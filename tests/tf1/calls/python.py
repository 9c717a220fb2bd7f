"""Python functions as nodes, and names of the root that stand in no other family."""

from tests.tf1.calls import separated

_SAMPLED = "tf.nn.%s(f(20, 4), f(20), l(8, %d), f(8, 4), 5, 20%s)"
CALLS: dict[str, list[str]] = {
    "einsum": [
        "tf.einsum('ij,jk->ik', f(2, 3), f(3, 4))", "tf.einsum('ij,jk', f(2, 3), f(3, 4), name='n')", "tf.einsum('ii', f(3, 3))",
        "tf.einsum('...ij,...jk->...ik', f(2, 2, 3), f(2, 3, 4))", "tf.einsum('ij,jk,kl->il', f(2, 3), f(3, 40), f(40, 5))",
        "tf.einsum('bij, bjk, k -> bi', f(2, 3, 4), f(2, 4, 5), f(5))",
    ],
    "sort": [
        "tf.sort(f(3, 4))", "tf.sort(i(3, 4), 0, name='n')", "tf.sort(f(3, 4, 2), 1, 'DESCENDING')",
        "tf.sort(tf.placeholder(tf.uint8, [3]))", "tf.sort(f(None, 4), -2)",
    ],
    "argsort": ["tf.argsort(f(3, 4))", "tf.argsort(i(3, 4), 0, 'DESCENDING', True, 'n')", "tf.argsort(tf.placeholder(tf.uint8, [3]))"],
    "searchsorted": ["tf.searchsorted(f(2, 4), f(2, 3))", "tf.searchsorted(i(4), i(3), 'right', tf.int64, 'n')"],
    "batch_gather": ["tf.batch_gather(f(2, 3), i(2, 2))", "tf.batch_gather(f(2, 3, 4), l(2, 3, 1), name='n')"],
    "histogram_fixed_width_bins": [
        "tf.histogram_fixed_width_bins(f(4), [0.0, 1.0], 5)", "tf.histogram_fixed_width_bins(d(2, 2), d(2), 10, name='n')",
    ],
    "repeat": [
        "tf.repeat(f(3), 2)", "tf.repeat(f(2, 3), [1, 2], 0)", "tf.repeat(f(2, 3), i(3), axis=1, name='n')", "tf.repeat(3, 4)",
    ],
    "scatter_nd_update": separated("""
v = tf.Variable([1.0, 2.0, 3.0], name='v')
tf.scatter_nd_update(v, [[0]], [5.0])
---
v = tf.Variable([1.0, 2.0, 3.0], use_resource=True, name='v')
tf.scatter_nd_update(v, [[0]], [5.0], name='n')
"""),
    "scatter_nd_add": separated("""
v = tf.Variable([1.0, 2.0, 3.0], name='v')
tf.scatter_nd_add(v, [[0]], [5.0])
---
v = tf.Variable([[1.0, 2.0, 3.0]], name='v')
tf.scatter_nd_add(v, [[0, 1]], f(1), True)
"""),
    "scatter_nd_sub": separated("""
v = tf.Variable([1.0, 2.0, 3.0], name='v')
tf.scatter_nd_sub(v, [[0]], [5.0])
---
v = tf.Variable([[1.0, 2.0, 3.0]], name='v')
tf.scatter_nd_sub(v, [[0, 1]], f(1), True)
"""),
    "batch_scatter_update": separated("""
v = tf.Variable(np.zeros((2, 3), 'f'), name='v')
tf.batch_scatter_update(v, i(2, 1), f(2, 1))
---
v = tf.Variable(np.zeros((2, 3), 'f'), name='v')
tf.batch_scatter_update(v, l(2, 1), f(2, 1), False, 'n')
"""),
    "nn.nce_loss": [_SAMPLED % ("nce_loss", 1, ""), _SAMPLED % ("nce_loss", 2, ", 2, remove_accidental_hits=True, name='n'")],
    "nn.sampled_softmax_loss": [
        _SAMPLED % ("sampled_softmax_loss", 1, ""),
        "tf.nn.sampled_softmax_loss([f(10, 4), f(10, 4)], f(20), i(8, 1), f(8, 4), 5, 20, partition_strategy='div', seed=3)",
    ],
    "nn.batch_norm_with_global_normalization": [
        "tf.nn.batch_norm_with_global_normalization(f(1, 2, 2, 3), f(3), f(3), f(3), f(3), 0.1, True)",
        "tf.nn.batch_norm_with_global_normalization(f(1, 2, 2, 3), f(3), f(3), f(3), f(3), 0.1, False, name='n')",
    ],
    "nn.scale_regularization_loss": ["tf.nn.scale_regularization_loss(f())", "tf.nn.scale_regularization_loss(f(3))"],
    "nn.compute_average_loss": [
        "tf.nn.compute_average_loss(f(4), global_batch_size=8)", "tf.nn.compute_average_loss(d(4), global_batch_size=2)",
    ],
    "print": separated("""
tf.print('a', f(2), 3)
---
tf.print(s(), output_stream='file:///tmp/x', name='n')
---
import sys
tf.print({'b': i(), 'a': [f(2), 'text']}, '{}', output_stream=sys.stdout, summarize=-1, sep=', ', end='', name='n')
"""),
    "add_check_numerics_ops": separated("""
x = f(2) + 1.0
tf.add_check_numerics_ops()
---
x = i(2) + 1
tf.cast(x, tf.float64)
tf.add_check_numerics_ops()
"""),
    "assert_variables_initialized": separated("""
tf.Variable(1.0, name='v')
tf.Variable([1.0, 2.0], name='w')
tf.assert_variables_initialized()
---
v = tf.Variable(1.0, name='v')
tf.assert_variables_initialized([v])
"""),
    "user_ops.my_fact": ["tf.user_ops.my_fact()", "tf.user_ops.my_fact() + 'x'"],
    "nn.collapse_repeated": ["tf.nn.collapse_repeated(i(2, 4), i(2))", "tf.nn.collapse_repeated(l(None, 4), l(None), name='n')"],
    "nn.ctc_unique_labels": ["tf.nn.ctc_unique_labels(i(2, 4))", "tf.nn.ctc_unique_labels(l(2, 4), name='n')"],
    "function": ["tf.function(lambda x: x * 2.0)(f(2))", "tf.function(lambda a, b: (a, b + 1), reduce_retracing=True)(f(2), b=i())"],
}  # fmt: skip

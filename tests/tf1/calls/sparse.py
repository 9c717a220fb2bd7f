"""tf.sparse: tensors of which only some elements are written down, and sets in their rows."""

_A = "tf.SparseTensor(l(None, 2), f(None), l(2))"
_B = "tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 3])"
_I = "tf.SparseTensor(l(None, 2), l(None), l(2))"

CALLS: dict[str, list[str]] = {
    "sparse.add": [f"tf.sparse_add({_A}, {_A})", f"tf.sparse.add({_A}, f(2, 3))", f"tf.sparse_add({_A}, {_B}, thresh=0.5)"],
    "sparse.concat": [
        f"tf.sparse_concat(0, [{_A}, {_B}])", f"tf.sparse.concat(1, [{_A}, {_B}], name='n')",
        f"tf.sparse_concat(1, [{_A}, {_A}], expand_nonconcat_dim=True)",
    ],
    "sparse.expand_dims": [f"tf.sparse.expand_dims({_A})", f"tf.sparse.expand_dims({_B}, 1, name='n')"],
    "sparse.eye": ["tf.sparse.eye(3)", "tf.sparse.eye(3, 4, tf.float64, name='n')"],
    "sparse.fill_empty_rows": [
        f"tf.sparse_fill_empty_rows({_A}, 0.0)", f"tf.sparse.fill_empty_rows({_B}, f(), name='n')",
    ],
    "sparse.from_dense": ["tf.sparse.from_dense(f(2, 3))", "tf.sparse.from_dense([[0, 1], [2, 0]], name='n')"],
    "sparse.mask": [
        "tf.sparse_mask(tf.IndexedSlices(f(3, 2), i(3)), i(2))",
        "tf.sparse.mask(tf.IndexedSlices(f(3, 2), l(3), l(2)), [1, 2], name='n')",
    ],
    "sparse.maximum": [f"tf.sparse_maximum({_A}, {_A})", f"tf.sparse.maximum({_A}, {_B}, name='n')"],
    "sparse.minimum": [f"tf.sparse_minimum({_A}, {_A})", f"tf.sparse.minimum({_A}, {_B}, name='n')"],
    "sparse.merge": [
        f"tf.sparse_merge({_I}, {_A}, 10)", f"tf.sparse.merge([{_I}, {_I}], {_A}, [10, 20], name='n', already_sorted=True)",
    ],
    "sparse.placeholder": [
        "tf.sparse_placeholder(tf.float32)", "tf.sparse.placeholder(tf.int64, [None, 3], name='n')",
        "tf.sparse_placeholder(tf.float32, [2, 3])",
        "tf.sparse_placeholder(tf.float32, shape=tf.constant([2, 3], tf.int64))",
        "tf.sparse_placeholder(tf.float32, tf.placeholder(tf.int64, [2]), name='n')",
        "tf.sparse_placeholder(tf.float32, tf.placeholder(tf.int64))",
    ],
    "sparse.reduce_max": [f"tf.sparse_reduce_max({_A})", f"tf.sparse.reduce_max({_A}, 1, True)"],
    "sparse.reduce_sum": [f"tf.sparse_reduce_sum({_A})", f"tf.sparse.reduce_sum({_A}, reduction_axes=[0], keep_dims=True)"],
    "sparse.reduce_max_sparse": [f"tf.sparse_reduce_max_sparse({_A}, 0)", f"tf.sparse.reduce_max_sparse({_A}, [1], True)"],
    "sparse.reduce_sum_sparse": [f"tf.sparse_reduce_sum_sparse({_A}, 0)", f"tf.sparse.reduce_sum_sparse({_A}, [1], True)"],
    "sparse.reorder": [f"tf.sparse_reorder({_A})", f"tf.sparse.reorder({_B}, name='n')"],
    "sparse.reset_shape": [f"tf.sparse_reset_shape({_A})", f"tf.sparse.reset_shape({_B}, [4, 5])"],
    "sparse.reshape": [f"tf.sparse_reshape({_A}, [3, 2])", f"tf.sparse.reshape({_B}, l(2), name='n')"],
    "sparse.retain": [f"tf.sparse_retain({_A}, b(None))", f"tf.sparse.retain({_B}, [True, False])"],
    "sparse.segment_sum": [
        "tf.sparse_segment_sum(f(5, 2), i(3), i(3))", "tf.sparse.segment_sum(f(5, 2), i(3), i(3), 'n', 4)",
    ],
    "sparse.segment_mean": [
        "tf.sparse_segment_mean(f(5, 2), i(3), i(3))", "tf.sparse.segment_mean(f(5, 2), i(3), i(3), 'n', 4)",
    ],
    "sparse.segment_sqrt_n": [
        "tf.sparse_segment_sqrt_n(f(5, 2), i(3), i(3))", "tf.sparse.segment_sqrt_n(f(5, 2), i(3), i(3), 'n', 4)",
    ],
    "sparse.slice": [f"tf.sparse_slice({_A}, [0, 0], [1, 2])", f"tf.sparse.slice({_B}, l(2), l(2), name='n')"],
    "sparse.softmax": [f"tf.sparse_softmax({_A})", f"tf.sparse.softmax({_B}, name='n')"],
    "sparse.sparse_dense_matmul": [
        f"tf.sparse_tensor_dense_matmul({_A}, f(3, 4))", f"tf.sparse.matmul({_B}, f(2, 4), adjoint_a=True, name='n')",
    ],
    "sparse.split": [
        f"tf.sparse_split(sp_input={_A}, num_split=2, axis=1)", f"tf.sparse.split(sp_input={_B}, num_split=2, axis=0, name='n')",
    ],
    "sparse.to_dense": [
        f"tf.sparse_tensor_to_dense({_A})", f"tf.sparse.to_dense({_B}, -1.0, False, name='n')",
        "tf.sparse.to_dense(tf.SparseTensor(l(None, 2), s(None), l(2)))",
    ],
    "sparse.to_indicator": [f"tf.sparse_to_indicator({_I}, 10)", f"tf.sparse.to_indicator({_I}, 10, name='n')"],
    "sparse.transpose": [f"tf.sparse_transpose({_A})", f"tf.sparse.transpose({_B}, [1, 0], name='n')"],
    "sparse.cross": [
        "tf.sparse.cross([s(2, 1), s(2, 2)])",
        "tf.sparse.cross([tf.SparseTensor(l(None, 2), s(None), l(2)), l(2, 2)], name='n')",
    ],
    "sparse.cross_hashed": [
        "tf.sparse.cross_hashed([s(2, 1), s(2, 2)])", "tf.sparse.cross_hashed([s(2, 1), l(2, 2)], 10, 3, name='n')",
    ],
    "sets.size": [f"tf.sets.set_size({_I})", f"tf.sets.size({_I}, False)"],
    "sets.intersection": [f"tf.sets.set_intersection({_I}, {_I})", "tf.sets.intersection(l(2, 3), l(2, 3))"],
    "sets.union": [f"tf.sets.set_union({_I}, {_I})", f"tf.sets.union(l(2, 3), {_I}, False)"],
    "sets.difference": [f"tf.sets.set_difference({_I}, {_I})", "tf.sets.difference(l(2, 3), l(2, 3), aminusb=False)"],
    "convert_to_tensor_or_sparse_tensor": [
        f"tf.convert_to_tensor_or_sparse_tensor({_A})", "tf.convert_to_tensor_or_sparse_tensor([1.0], name='n')",
    ],
    "convert_to_tensor_or_indexed_slices": [
        "tf.convert_to_tensor_or_indexed_slices([1.0])",
        "tf.convert_to_tensor_or_indexed_slices(tf.IndexedSlices(f(3, 2), i(3)), name='n')",
    ],
    "nn.embedding_lookup_sparse": [
        f"tf.nn.embedding_lookup_sparse(f(10, 4), {_I}, None)",
        f"tf.nn.embedding_lookup_sparse(f(10, 4), {_I}, {_A}, combiner='sum', name='n')",
        f"tf.nn.embedding_lookup_sparse([f(5, 4), f(5, 4)], {_I}, {_A}, combiner='sqrtn')",
    ],
}  # fmt: skip

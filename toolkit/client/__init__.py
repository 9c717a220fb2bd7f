"""Making graphs: op constructors, variables, gradients, optimizers, savers, the YAML spec.

The names below are what graph-building programs use, as TensorFlow 1 has them; each loads its module on first
use. Every op of the registry is also a function of `toolkit.client.ops`.

    from toolkit import client as gm

    x = gm.placeholder(gm.float32, [None, 2], name="x")
    w = gm.get_variable("w", [2, 1])
    loss = gm.reduce_mean(gm.square(gm.matmul(x, w) - 1.0), name="loss")
    gm.train.Adam(0.01).minimize(loss, gm.train.get_or_create_global_step(), name="train")
"""

from __future__ import annotations

import importlib
from typing import Any

from toolkit.graph import dtypes

#: names of modules in this namespace to where they are
_MODULES = {
    "gradients": "gradients", "input_pipelines": "inputs.pipelines", "layers": "layers", "nest": "structures.nest",
    "ops": "ops", "queues": "inputs.queues", "rnn": "recurrent.rnn", "rnn_cell": "recurrent.rnn_cell",
    "rnn_wrappers": "recurrent.wrappers", "summary": "summaries.summary", "train": "train", "spec": "spec",
    "initializers": "variables.initializers", "clip_ops": "math.clip_ops",
}  # fmt: skip

#: module to the names it gives to this namespace
_EXPORTS: dict[str, tuple[str, ...]] = {
    "arrays.array_ops": (
        "boolean_mask", "broadcast_to", "concat", "expand_dims", "fill", "gather", "gather_nd", "identity", "one_hot",
        "ones", "ones_like", "pad", "placeholder", "placeholder_with_default", "rank", "reshape", "reverse", "shape",
        "size", "slice", "split", "squeeze", "stack", "stop_gradient", "strided_slice", "tile", "transpose", "unstack",
        "where", "where_v2", "zeros", "zeros_like",
    ),
    "math.clip_ops": ("clip_by_global_norm", "clip_by_norm", "clip_by_value", "global_norm"),
    "construction.context": ("get_default_graph", "reset_default_graph"),
    "flow.control_flow": ("Assert", "case", "cond", "tuple_", "while_loop", "with_dependencies"),
    "construction.convert": ("constant", "convert_to_tensor"),
    "construction.create": ("create_op",),
    "metagraphs.export": ("predict_signature", "tensor_info", "to_meta_graph"),
    "gradients": (
        "AggregationMethod", "NoGradient", "NotDifferentiable", "RegisterGradient", "custom_gradient",
        "grad_pass_through", "gradient", "hessians", "no_gradient",
    ),
    "flow.functional_ops": ("foldl", "foldr", "map_fn", "scan"),
    "construction.graph": ("Graph",),
    "construction.grouping": ("group",),
    "metagraphs.importing": ("import_graph_def", "import_meta_graph"),
    "math.math_ops": (
        "abs", "add", "add_n", "argmax", "argmin", "cast", "cumsum", "divide", "equal", "exp", "log", "matmul",
        "maximum", "minimum", "multiply", "negative", "pow", "range", "reduce_all", "reduce_any", "reduce_logsumexp",
        "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum", "rsqrt", "sigmoid", "sqrt", "square",
        "subtract", "tanh", "unsorted_segment_sum",
    ),
    "nn.nn_ops": (
        "avg_pool", "batch_normalization", "bias_add", "conv2d", "conv2d_transpose", "depthwise_conv2d", "dropout",
        "elu", "embedding_lookup", "fused_batch_norm", "in_top_k", "l2_loss", "leaky_relu",
        "local_response_normalization", "log_softmax", "max_pool", "moments", "relu", "relu6", "selu",
        "sigmoid_cross_entropy_with_logits", "softmax", "softmax_cross_entropy_with_logits",
        "softmax_cross_entropy_with_logits_v2", "softplus", "softsign",
        "sparse_softmax_cross_entropy_with_logits", "swish", "top_k",
    ),
    "construction.operation": ("Operation",),
    "variables.partition": (
        "PartitionedVariable", "fixed_size_partitioner", "min_max_variable_partitioner",
        "variable_axis_size_partitioner",
    ),
    "random.random_ops": ("multinomial", "random_normal", "random_shuffle", "random_uniform", "truncated_normal"),
    "construction.scopes": ("colocate_with", "container", "control_dependencies", "device", "init_scope", "name_scope"),
    "random.seeds": ("get_seed", "set_random_seed"),
    "construction.session_stack": ("get_default_session",),
    "construction.tensor": ("IndexedSlices", "Tensor"),
    "flow.tensor_array": ("TensorArray",),
    "variables.store": ("AUTO_REUSE", "get_local_variable", "get_variable", "get_variable_scope", "variable_scope"),
    "variables.by_collection": (
        "global_variables", "global_variables_initializer", "local_variables", "local_variables_initializer",
        "report_uninitialized_variables", "tables_initializer", "trainable_variables", "variables_initializer",
    ),
    "variables.creation": ("Variable",),
}  # fmt: skip
_HOMES = {name: module for module, names in _EXPORTS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        # Not cached in the namespace: importing a submodule of the same name would overwrite it.
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{_MODULES[name]}")
    if name == "grad":  # `gradients` is the package
        return importlib.import_module(f"{__name__}.gradients").gradients
    if name == "bool":
        return dtypes.bool_
    if name == "GraphKeys":
        from toolkit.graph.metagraph import GraphKeys

        return GraphKeys
    if hasattr(dtypes, name) and isinstance(getattr(dtypes, name), dtypes.DType):
        return getattr(dtypes, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*_HOMES, *_MODULES, "GraphKeys", "grad"})

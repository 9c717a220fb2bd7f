"""What programs import from tensorflow.python.* although it is not public, and helpers of tf.contrib's modules."""

_INSPECTED = (
    "isclass", "isfunction", "ismethod", "ismodule", "isbuiltin", "isroutine", "isgenerator", "isgeneratorfunction",
    "getdoc", "getfile", "getfullargspec", "getmembers", "getmodule", "getmro", "getsource", "getsourcefile",
    "getcallargs", "signature", "stack", "currentframe",
)  # fmt: skip

HOMES: dict[str, str] = {
    "toolkit.tensorflow.modules": "VERSION",
    "inspect": " ".join(f"python.util.tf_inspect.{name}" for name in _INSPECTED),
    "contextlib": "python.util.tf_contextlib.contextmanager",
    "toolkit.tensorflow.families.framework.internal_tools": """
        python.client.session.register_session_run_conversion_functions
        python.client.device_lib.list_local_devices python.util.tf_inspect.getargspec
        python.util.tf_inspect.ArgSpec python.framework.ops.is_dense_tensor_like
        python.framework.ops._TensorLike=TensorKind
        python.util.tf_decorator.make_decorator python.util.tf_decorator.unwrap python.util.all_util.make_all
        python.util.all_util.remove_undocumented python.ops.resources.register_resource
        python.ops.resources.shared_resources python.ops.resources.local_resources
        python.ops.resources.initialize_resources
        python.training.moving_averages.assign_moving_average nn.rnn_cell._linear=linear contrib.rnn._linear=linear
        python.ops.rnn_cell_impl._linear=linear python.ops.rnn_cell._linear=linear
    """,
    "toolkit.tensorflow.families.layers.initializers": "python.ops.init_ops.Initializer",
    "toolkit.tensorflow.families.platform.flags": "flags._FlagValues=begin_anew",
    "toolkit.tensorflow.families.train.monitored": "python.training.monitored_session._HookedSession=HookedSession",
    "toolkit.tensorflow.families.framework.graph_tools": """
        python.tools.freeze_graph.freeze_graph python.tools.freeze_graph.freeze_graph_with_def_protos
        python.tools.inspect_checkpoint.print_tensors_in_checkpoint_file python.tools.strip_unused_lib.strip_unused
    """,
    "toolkit.client.metrics.classes": "python.ops.metrics_impl._streaming_confusion_matrix=streaming_confusion_matrix",
    "toolkit.client.scoped_layers.common": """
        contrib.layers.utils.last_dimension contrib.layers.utils.first_dimension contrib.layers.utils.channel_dimension
    """,
    "toolkit.client.metrics.state": "python.ops.metrics_impl.metric_variable",
}

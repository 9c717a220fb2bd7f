"""Other spellings of names: those of older releases, and TensorFlow's internal modules that programs import from."""

#: a spelling of an older release to the name that it has now
ALIASES: dict[str, str] = {
    "mul": "math.multiply", "sub": "math.subtract", "neg": "math.negative", "pack": "stack", "unpack": "unstack",
    "batch_matmul": "linalg.matmul", "complex_abs": "math.abs", "select": "where", "inv": "reciprocal",
    "batch_cholesky": "linalg.cholesky", "batch_matrix_inverse": "linalg.inv",
    "batch_matrix_determinant": "linalg.det", "batch_matrix_diag": "linalg.diag",
    "batch_matrix_diag_part": "linalg.diag_part", "batch_matrix_transpose": "linalg.matrix_transpose",
    "batch_matrix_triangular_solve": "linalg.triangular_solve", "batch_fft": "signal.fft", "batch_ifft": "signal.ifft",
    "image_summary": "summary.image", "histogram_summary": "summary.histogram", "scalar_summary": "summary.scalar",
    "audio_summary": "summary.audio", "merge_summary": "summary.merge", "merge_all_summaries": "summary.merge_all",
    "train.SummaryWriter": "summary.FileWriter",
    "listdiff": "setdiff1d", "contrib.layers.xavier_initializer_conv2d": "contrib.layers.xavier_initializer",
    "VariableV1": "Variable", "nn.rnn": "nn.static_rnn", "concat_v2": "concat",
    "image.per_image_whitening": "image.per_image_standardization", "nn.deconv2d": "nn.conv2d_transpose",
    "contrib.data.Dataset": "data.Dataset", "contrib.data.Iterator": "data.Iterator",
    "contrib.data.TextLineDataset": "data.TextLineDataset", "contrib.data.TFRecordDataset": "data.TFRecordDataset",
    "contrib.data.FixedLengthRecordDataset": "data.FixedLengthRecordDataset",
    "python.layers.utils.smart_cond": "contrib.framework.smart_cond",
    "python.layers.utils.constant_value": "contrib.framework.smart_constant_value",
    "python.util.deprecation.deprecated": "contrib.framework.deprecated",
    "python.util.deprecation.deprecated_args": "contrib.framework.deprecated_args",
    "nn.bidirectional_rnn": "nn.static_bidirectional_rnn", "is_numeric_tensor": "debugging.is_numeric_tensor",
} | {
    f"keras.initializers.{name}": f"initializers.{other}"
    for name, other in {"Zeros": "zeros", "Ones": "ones", "Constant": "constant", "Orthogonal": "orthogonal",
                        "VarianceScaling": "variance_scaling"}.items()
} | {
    f"train.experimental.{name}": f"mixed_precision.{name}"
    for name in ("LossScale", "FixedLossScale", "DynamicLossScale", "MixedPrecisionLossScaleOptimizer",
                 "enable_mixed_precision_graph_rewrite", "disable_mixed_precision_graph_rewrite")
} | {
    f"config.experimental.{name}": f"config.{name}"
    for name in ("list_physical_devices", "list_logical_devices", "get_visible_devices", "set_visible_devices")
}  # fmt: skip

#: spellings that are told to write otherwise; those of TensorFlow 2.21 are in the facts
DEPRECATED = frozenset(
    {
        "mul", "sub", "neg", "pack", "unpack", "batch_matmul", "complex_abs", "select", "inv", "image_summary",
        "histogram_summary", "scalar_summary", "audio_summary", "merge_summary", "merge_all_summaries",
        "train.SummaryWriter", "listdiff", "nn.rnn", "nn.bidirectional_rnn",
    }
)  # fmt: skip

#: spellings that TensorFlow 2.21 calls deprecated for another that is not here: there is nothing else to write
CURRENT = frozenset({"train.Server"})

#: an internal module to the public modules ("" is the root) in which its names are looked for, in this order
SEARCHED: dict[str, tuple[str, ...]] = {
    "keras.initializers": ("initializers",), "python.keras.initializers": ("keras.initializers",),
    "python.keras.regularizers": ("keras.regularizers",),
    "python.framework.graph_util_impl": ("graph_util",), "python.pywrap_tensorflow": ("train",),
    "python.framework.tensor_conversion_registry": ("",),
    "python.estimator.estimator": ("estimator",), "python.estimator.model_fn": ("estimator",),
    "python.estimator.run_config": ("estimator",), "python.estimator.inputs": ("estimator.inputs",),
    "python.estimator.training": ("estimator",), "python.estimator.exporter": ("estimator",),
    "python.training.evaluation": ("train", "contrib.training"),
    "contrib.learn.python.learn.datasets.mnist": ("examples.tutorials.mnist.input_data",),
    "contrib.learn.datasets.mnist": ("examples.tutorials.mnist.input_data",),
    "contrib.learn.python.learn.datasets": ("contrib.learn.datasets",),
    "contrib.learn.python.learn.datasets.base": ("contrib.learn.datasets.base",),
    "contrib.learn.io": ("contrib.learn", "estimator.inputs"), "contrib.learn.graph_actions": ("contrib.learn",),
    "contrib.learn.estimators": ("contrib.learn",),
    "contrib.learn.utils": ("contrib.learn",), "contrib.learn.basic_session_run_hooks": ("train",),
    **{
        f"contrib.learn.{inside}{module}": tuple(each for each in found if each != f"contrib.learn.{inside}{module}")
        for inside in ("", "python.learn.")
        for module, found in {
            "utils.input_fn_utils": ("contrib.learn.utils.input_fn_utils", "contrib.learn"),
            "utils.saved_model_export_utils": ("contrib.learn.utils.saved_model_export_utils", "contrib.learn"),
            "estimators.tensor_signature": ("contrib.learn.estimators.tensor_signature",),
            **{
                f"estimators.{name}": (f"contrib.learn.python.learn.estimators.{name}", "contrib.learn")
                for name in ("_sklearn", "metric_key", "run_config", "estimator")
            },
            **{
                f"estimators.{name}": ("contrib.learn",)
                for name in ("constants", "model_fn", "prediction_key")
            },
        }.items()
    },
    "contrib.learn.python.learn.run_config": ("contrib.learn", "contrib.learn.python.learn.estimators.run_config"),
    "contrib.learn.python.learn.learn_runner": ("contrib.learn.learn_runner",),
    "contrib.learn.python.learn.monitors": ("contrib.learn.monitors", "contrib.learn"),
    "contrib.learn.python.learn.learn_io": ("contrib.learn.io",),
    "contrib.learn.python.learn.learn_io.graph_io": ("contrib.learn",),
    "contrib.learn.python.learn.monitored_session": ("train",),
    "contrib.learn.python.learn.session_run_hook": ("train",),
    "contrib.learn.python.learn.basic_session_run_hooks": ("train",),
    "contrib.learn.python.learn.summary_writer_cache": ("summary",),
    **{
        f"contrib.learn.python.learn.{name}": ("contrib.learn",)
        for name in ("estimators", "evaluable", "experiment", "export_strategy", "graph_actions", "metric_spec",
                     "trainable", "utils")
    },
    "contrib.learn.python.learn": ("contrib.learn",),
    "contrib.layers.summaries": ("contrib.layers",),
    "contrib.rnn.python.ops.core_rnn": ("contrib.rnn",), "contrib.rnn.python.ops.core_rnn_cell_impl": ("contrib.rnn",),
    "python.util.compat": ("compat",), "python.compat.compat": ("compat",),
    "python": ("",), "python.framework": ("",), "python.ops": ("",), "python.platform": ("",),
    "python.training": ("train",), "python.client": ("",), "python.util": ("",), "python.lib.io": ("io",),
    "python.framework.ops": ("",), "python.framework.dtypes": ("dtypes", ""), "python.framework.tensor_shape": ("",),
    "python.framework.constant_op": ("",), "python.framework.errors": ("errors",), "python.framework.errors_impl":
    ("errors",), "python.framework.graph_util": ("graph_util",), "python.framework.random_seed": ("random", ""),
    "python.framework.sparse_tensor": ("sparse", ""), "python.framework.tensor_util": ("",),
    "python.framework.function": ("",), "python.framework.importer": ("",), "python.framework.meta_graph": ("train",),
    "python.framework.test_util": ("test",), "python.ops.array_ops": ("", "linalg", "sparse"),
    "python.ops.math_ops": ("math", ""), "python.ops.nn_ops": ("nn",), "python.ops.nn": ("nn",),
    "python.ops.nn_impl": ("nn",), "python.ops.control_flow_ops": ("",), "python.ops.state_ops": ("",),
    "python.ops.variables": ("",), "python.ops.variable_scope": ("",), "python.ops.init_ops": ("", "initializers"),
    "python.ops.random_ops": ("random", ""), "python.ops.embedding_ops": ("nn",), "python.ops.clip_ops": ("",),
    "python.ops.check_ops": ("debugging", ""), "python.ops.gradients": ("",), "python.ops.gradients_impl": ("",),
    "python.ops.linalg_ops": ("linalg", ""), "python.ops.logging_ops": ("",), "python.ops.io_ops": ("io", ""),
    "python.ops.parsing_ops": ("io", ""), "python.ops.image_ops": ("image",), "python.ops.data_flow_ops": ("queue", ""),
    "python.ops.string_ops": ("strings", ""), "python.ops.sparse_ops": ("sparse", ""), "python.ops.rnn": ("nn",),
    "python.ops.rnn_cell": ("nn.rnn_cell",), "python.ops.rnn_cell_impl": ("nn.rnn_cell",),
    "python.ops.tensor_array_ops": ("",), "python.ops.functional_ops": ("",), "python.ops.map_fn": ("",),
    "python.ops.script_ops": ("",), "python.ops.template": ("",), "python.ops.losses.losses": ("losses",),
    "python.ops.metrics": ("metrics",), "python.ops.metrics_impl": ("metrics",),
    "python.ops.lookup_ops": ("lookup", "contrib.lookup"),
    "python.ops.resource_variable_ops": ("",), "python.ops.partitioned_variables": ("",),
    "python.ops.candidate_sampling_ops": ("random", "nn"), "python.ops.confusion_matrix": ("math",),
    "python.ops.histogram_ops": ("",), "python.ops.session_ops": ("",), "python.ops.spectral_ops": ("signal",),
    "python.ops.ctc_ops": ("nn",), "python.ops.bitwise_ops": ("bitwise",), "python.ops.numerics": ("debugging", ""),
    "python.ops.special_math_ops": ("math", ""), "python.ops.standard_ops": ("",),
    "python.platform.gfile": ("gfile",), "python.platform.app": ("app",), "python.platform.flags": ("flags",),
    "python.platform.tf_logging": ("logging",), "python.platform.test": ("test",), "python.platform.googletest":
    ("test",), "python.platform.resource_loader": ("",), "python.util.nest":
    ("nest", "contrib.framework.nest"), "python.data.util.nest": ("nest", "contrib.framework.nest"),
    "python.client.session": ("",), "python.client.timeline": ("",), "python.lib.io.file_io": ("io.gfile",),
    "python.lib.io.tf_record": ("io",), "python.lib.io.python_io": ("io",), "python.summary.summary": ("summary",),
    "python.summary.writer.writer": ("summary",), "python.training.training": ("train",), "python.training.saver":
    ("train",), "python.training.optimizer": ("train",), "python.training.adam": ("train",),
    "python.training.gradient_descent": ("train",), "python.training.momentum": ("train",),
    "python.training.training_util": ("train",), "python.training.training_ops": ("train",),
    "python.training.moving_averages": ("train", "contrib.framework"), "python.training.session_run_hook": ("train",),
    "python.training.basic_session_run_hooks": ("train",), "python.training.monitored_session": ("train",),
    "python.training.coordinator": ("train",), "python.training.queue_runner": ("train", "train.queue_runner"),
    "python.training.input": ("train",), "python.training.learning_rate_decay": ("train",),
    "python.training.checkpoint_utils": ("train",), "python.training.slot_creator": ("train",),
    "python.training.session_manager": ("train",), "python.training.supervisor": ("train",),
    "python.training.server_lib": ("train",), "python.training.device_setter": ("train",),
    "python.layers.layers": ("layers",), "python.layers.base": ("layers",), "python.layers.core": ("layers",),
    "python.layers.convolutional": ("layers",), "python.layers.normalization": ("layers",),
    "python.layers.pooling": ("layers",), "python.saved_model.builder": ("saved_model.builder",),
    "python.saved_model.loader": ("saved_model.loader",), "python.saved_model.tag_constants":
    ("saved_model.tag_constants",), "python.saved_model.signature_constants": ("saved_model.signature_constants",),
    "python.saved_model.signature_def_utils": ("saved_model.signature_def_utils",),
    "python.saved_model.utils": ("saved_model.utils",), "python.saved_model.simple_save": ("saved_model",),
    "python.data.ops.dataset_ops": ("data",), "python.data.ops.iterator_ops": ("data",),
    "core.framework.graph_pb2": ("",), "core.framework.node_def_pb2": ("",), "core.framework.attr_value_pb2": ("",),
    "core.framework.summary_pb2": ("",), "core.framework.types_pb2": ("",), "core.framework.tensor_pb2": ("",),
    "core.protobuf.config_pb2": ("",), "core.protobuf.meta_graph_pb2": ("",), "core.protobuf.saver_pb2": ("train",),
    "core.util.event_pb2": ("",), "core.example.example_pb2": ("train",), "core.example.feature_pb2": ("train",),
    "nn.seq2seq": ("contrib.legacy_seq2seq",),
    "contrib": (), "contrib.layers": (), "contrib.rnn": (), "contrib.framework": (),
    "contrib.layers.python": (), "contrib.layers.python.layers": ("contrib.layers",),
    "contrib.layers.python.layers.layers": ("contrib.layers",),
    "contrib.layers.python.layers.initializers": ("contrib.layers",),
    "contrib.layers.python.layers.regularizers": ("contrib.layers",),
    "contrib.layers.python.layers.normalization": ("contrib.layers",),
    "contrib.layers.python.layers.optimizers": ("contrib.layers", "contrib.slim"),
    "contrib.layers.python.layers.encoders": ("contrib.layers",),
    "contrib.layers.python.layers.embedding_ops": ("contrib.layers",),
    "contrib.layers.python.layers.utils": ("contrib.layers.utils",), "contrib.slim.utils": ("contrib.layers.utils",),
    # tf.contrib.slim holds the modules of tf.contrib.layers under their names, too
    **{
        f"contrib.slim.{module}": ("contrib.layers",)
        for module in ("layers", "initializers", "regularizers", "normalization", "optimizers", "feature_column",
                       "feature_column_ops", "embedding_ops", "encoders")
    },
    "contrib.slim.variables": ("",),
    "contrib.slim.python": (), "contrib.slim.python.slim": ("contrib.slim",), "contrib.slim.python.slim.nets": (),
    "contrib.slim.python.slim.data": (),
    **{
        f"contrib.slim.python.slim.{place}{module}": (f"contrib.slim.{kept}{module}",)
        for place, kept, names in (
            ("", "", ("learning", "evaluation", "queues", "summaries", "model_analyzer")),
            ("nets.", "nets.", ("alexnet", "overfeat", "vgg", "resnet_utils", "resnet_v1", "resnet_v2", "inception")),
            ("data.", "", ("data_decoder", "data_provider", "dataset", "dataset_data_provider", "parallel_reader",
                           "prefetch_queue", "tfexample_decoder")),
        )
        for module in names
    },
    **{f"contrib.slim.python.slim.nets.inception_v{n}": ("contrib.slim.nets.inception",) for n in (1, 2, 3)},
    "contrib.tfprof.tfprof_logger": ("profiler",), "contrib.tfprof.python.tools.tfprof.tfprof_logger": ("profiler",),
    "contrib.tfprof.python.tools.tfprof.model_analyzer": ("contrib.tfprof.model_analyzer",),
    **{f"python.profiler.{name}": ("profiler",) for name in ("option_builder", "model_analyzer", "tfprof_logger")},
    "contrib.distributions.python": ("contrib.distributions",),
    "contrib.distributions.python.ops": ("contrib.distributions",),
    **{
        f"contrib.distributions.python.ops.{module}": ("contrib.distributions",)  # as releases up to 1.3 had them
        for module in ("bernoulli", "beta", "categorical", "dirichlet", "dirichlet_multinomial", "exponential", "gamma",
                       "laplace", "multinomial", "normal", "student_t", "uniform")
    },
    "contrib.framework.python": (), "contrib.framework.python.ops": ("contrib.framework",),
    "contrib.framework.python.ops.arg_scope": ("contrib.framework",),
    "contrib.framework.python.ops.variables": ("contrib.framework",),
    "contrib.framework.python.framework": ("contrib.framework",),
    "contrib.framework.python.framework.checkpoint_utils": ("contrib.framework",),
    "contrib.framework.python.framework.tensor_util": ("contrib.framework",),
}  # fmt: skip

#: modules whose package has a function by their name, to that function: who imports the name gets the function
HIDDEN_MODULES = {"contrib.framework.python.ops.arg_scope": "contrib.framework.arg_scope"}

#: internal modules that have a function for every op, by its name in snake case
OP_MODULES = frozenset(
    f"python.ops.gen_{family}_ops"
    for family in (
        "array", "math", "nn", "state", "control_flow", "data_flow", "image", "io", "linalg", "logging", "parsing",
        "random", "sparse", "string", "training", "user", "resource_variable", "candidate_sampling", "lookup", "script",
        "functional", "ctc", "set", "spectral", "bitwise", "dataset", "rnn", "list", "ragged", "summary", "audio",
    )
)  # fmt: skip
SEARCHED.update(dict.fromkeys([*OP_MODULES, "raw_ops"], ()))

# TensorFlow, which this script reads the names from, has no types.
# pyright: basic
"""Export which public names TensorFlow 1.15's internal modules have to schemas/tf1_internal.txt.xz, and which modules
there are at all to schemas/tf1_modules.txt.xz.

    python3.7 schemas/export_tf1_internal.py

It runs under the interpreter that has TensorFlow 1.15, so it is written for Python 3.7 and imports nothing of this
project. A line is a module of tensorflow.python that programs import, a name in it, and what the name is publicly; for
modules that only pass on what others define, that, too.
"""

import importlib
import inspect
import lzma
import os
import re
from pathlib import Path

FILE = Path(__file__).resolve().parent / "tf1_internal.txt.xz"
ALL_MODULES_FILE = FILE.with_name("tf1_modules.txt.xz")
MODULES = """
    framework.ops framework.dtypes framework.tensor_shape framework.constant_op framework.graph_util
    framework.function framework.tensor_util framework.errors framework.errors_impl framework.random_seed
    framework.sparse_tensor framework.importer framework.meta_graph framework.test_util framework.common_shapes
    framework.load_library framework.versions framework.tensor_spec framework.device framework.graph_io
    framework.indexed_slices framework.smart_cond ops.array_ops ops.math_ops ops.nn_ops ops.nn ops.nn_impl ops.rnn
    ops.rnn_cell ops.rnn_cell_impl ops.variable_scope ops.variables ops.init_ops ops.control_flow_ops
    ops.tensor_array_ops ops.gen_array_ops ops.gen_math_ops ops.gen_nn_ops ops.gen_state_ops ops.gen_image_ops
    ops.gen_data_flow_ops ops.gen_io_ops ops.gen_linalg_ops ops.gen_logging_ops ops.gen_parsing_ops
    ops.gen_random_ops ops.gen_sparse_ops ops.gen_string_ops ops.candidate_sampling_ops ops.embedding_ops
    ops.state_ops ops.random_ops ops.clip_ops ops.check_ops ops.gradients ops.gradients_impl ops.linalg_ops
    ops.logging_ops ops.io_ops ops.parsing_ops ops.image_ops ops.image_ops_impl ops.data_flow_ops ops.string_ops
    ops.sparse_ops ops.functional_ops ops.map_fn ops.script_ops ops.template ops.lookup_ops
    ops.resource_variable_ops ops.partitioned_variables ops.confusion_matrix ops.histogram_ops ops.session_ops
    ops.spectral_ops ops.ctc_ops ops.bitwise_ops ops.numerics ops.special_math_ops ops.standard_ops ops.metrics
    ops.metrics_impl ops.losses.losses ops.losses.losses_impl ops.losses.util ops.distributions.normal
    ops.distributions.categorical ops.distributions.bernoulli ops.distributions.kullback_leibler
    ops.distributions.distribution ops.linalg.linear_operator ops.ragged.ragged_tensor ops.cond_v2 ops.while_v2
    ops.control_flow_util ops.custom_gradient ops.sets ops.sort_ops ops.manip_ops ops.weights_broadcast_ops
    ops.inplace_ops ops.cudnn_rnn_grad ops.boosted_trees_ops ops.batch_ops ops.signal.signal training.saver
    training.optimizer training.moving_averages training.training_util training.adam training.gradient_descent
    training.momentum training.adagrad training.rmsprop training.ftrl training.adadelta
    training.learning_rate_decay training.monitored_session training.basic_session_run_hooks
    training.session_run_hook training.session_manager training.supervisor training.coordinator
    training.queue_runner training.queue_runner_impl training.input training.training training.training_ops
    training.checkpoint_utils training.checkpoint_management training.server_lib training.device_setter
    training.sync_replicas_optimizer training.slot_creator training.warm_starting_util training.evaluation
    training.summary_io training.proximal_adagrad training.proximal_gradient_descent training.adagrad_da
    platform.gfile platform.app platform.flags platform.tf_logging platform.test platform.googletest
    platform.resource_loader platform.sysconfig client.device_lib client.timeline client.session layers.base
    layers.core layers.convolutional layers.pooling layers.normalization layers.layers layers.utils util.nest
    util.tf_inspect util.deprecation util.tf_export util.compat util.tf_decorator util.tf_should_use
    tools.freeze_graph tools.inspect_checkpoint tools.optimize_for_inference_lib tools.strip_unused_lib
    data.ops.dataset_ops data.ops.iterator_ops data.ops.readers data.util.nest data.experimental lib.io.file_io
    lib.io.tf_record lib.io.python_io summary.summary summary.writer.writer summary.writer.writer_cache
    summary.summary_iterator saved_model.builder saved_model.loader saved_model.signature_constants
    saved_model.tag_constants saved_model.signature_def_utils saved_model.utils saved_model.simple_save
    saved_model.main_op saved_model.saved_model estimator.estimator estimator.run_config estimator.model_fn
    estimator.export.export estimator.inputs.inputs profiler.model_analyzer profiler.profiler
    profiler.option_builder feature_column.feature_column feature_column.feature_column_v2
    lib.core.error_codes_pb2 pywrap_tensorflow eager.context eager.backprop eager.function autograph debug
""".split()  # noqa: SIM905 (one line for each would be long)
#: modules whose names are other modules'
PASSED_ON = frozenset(
    """
    ops.standard_ops ops.nn ops.rnn_cell training.training ops.losses.losses ops.metrics ops.gradients layers.layers
    ops.image_ops ops.array_ops ops.math_ops platform.test summary.summary lib.io.python_io platform.gfile
    framework.errors saved_model.saved_model training.queue_runner
    """.split()  # noqa: SIM905 (as above)
)


def public_name(value):
    """The first public name that a function or class is exported under; None where it has none of its own."""
    if not (inspect.isclass(value) or inspect.isfunction(value) or hasattr(value, "__wrapped__")):
        return None
    return min(vars(value).get("_tf_api_names_v1", ()), default=None)


def names_of(module):
    """Each name of an internal module with its public one."""
    dotted = "tensorflow.python." + module
    try:
        found = importlib.import_module(dotted)
    except ImportError:
        return
    for name in dir(found):
        value = getattr(found, name, None)
        public = None if name.startswith("_") else public_name(value)
        if public is not None and (module in PASSED_ON or getattr(value, "__module__", "") == dotted):
            yield name, public


#: what is no module that a program imports, or another library's
NO_MODULES = re.compile(r"_test$|_api|\.tests?(\.|$)|^python\.keras|^contrib\.keras|^contrib\.lite")


def all_modules():
    """Every module below contrib, python, core, examples, tools and compiler, by its file."""
    import tensorflow_core  # pyright: ignore[reportMissingImports]  # TensorFlow 1.15's, under its own Python

    root = Path(str(tensorflow_core.__file__)).parent
    for top in ("contrib", "python", "core", "examples", "tools", "compiler"):
        for path in (root / top).rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            dotted = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            if not NO_MODULES.search(dotted):
                yield dotted


def main():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    listed = "\n".join(sorted(set(all_modules()))) + "\n"
    ALL_MODULES_FILE.write_bytes(lzma.compress(listed.encode(), preset=9))
    lines = [
        "python.{}\t{}\t{}".format(module, name, public)  # noqa: UP032 (as in the scripts beside it)
        for module in sorted(MODULES)
        for name, public in names_of(module)
    ]
    text = "\n".join(lines) + "\n"
    FILE.write_bytes(lzma.compress(text.encode(), preset=9))
    print(len(lines), "names")


if __name__ == "__main__":
    main()

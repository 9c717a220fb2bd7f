"""What is public resolves through TensorFlow's internal modules, too, as programs import it."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from toolkit.tensorflow import importer, internal, modules, names, programs
from toolkit.tensorflow.tables import spellings


def _found(module: str) -> dict[str, tuple[str, object, object]]:
    """Names of a module whose public name is here, with what both stand for."""
    found: dict[str, tuple[str, object, object]] = {}
    for name, public in internal.facts()[module].items():
        wanted = names.find(public)
        if wanted is not names.ABSENT:
            found[name] = public, wanted, names.find(f"{module}.{name}")
    return found


@pytest.mark.parametrize("module", sorted(internal.facts()))
def test_internal_names_are_the_public_ones(module: str) -> None:
    found = _found(module)
    assert [name for name, (_, _, here) in found.items() if here is names.ABSENT] == []
    # gen_ modules have the ops themselves, whose arguments may be others than the public function's
    if module not in spellings.OP_MODULES:
        assert [name for name, (_, wanted, here) in found.items() if here is not wanted] == []


def test_programs_import_them() -> None:
    with importer.installed():
        init_ops = importlib.import_module("tensorflow.python.ops.init_ops")
        tensorflow = importlib.import_module("tensorflow")
        assert init_ops.Constant is tensorflow.constant_initializer
        file_io = importlib.import_module("tensorflow.python.lib.io.file_io")
        assert file_io.file_exists is tensorflow.gfile.Exists
        optimizer = importlib.import_module("tensorflow.python.training.rmsprop")
        assert optimizer.RMSPropOptimizer is tensorflow.train.RMSPropOptimizer
        with pytest.raises(ImportError, match="Nothing"):
            exec("from tensorflow.python.ops.init_ops import Nothing", {})


@pytest.mark.parametrize(
    ("module", "name", "public"),
    [
        ("contrib.training.python.training.hparam", "HParams", "contrib.training.HParams"),
        ("contrib.seq2seq.python.ops.attention_wrapper", "AttentionWrapper", "contrib.seq2seq.AttentionWrapper"),
        ("contrib.rnn.python.ops.core_rnn_cell", "BasicLSTMCell", "contrib.rnn.BasicLSTMCell"),
        ("python.pywrap_tensorflow", "NewCheckpointReader", "train.NewCheckpointReader"),
        ("python.estimator.run_config", "RunConfig", "estimator.RunConfig"),
        ("python.layers.utils", "smart_cond", "contrib.framework.smart_cond"),
        ("contrib.data", "TextLineDataset", "data.TextLineDataset"),
    ],
)
def test_names_inside_of_modules_are_those_outside(module: str, name: str, public: str) -> None:
    with importer.installed():
        assert getattr(importlib.import_module(f"tensorflow.{module}"), name) is names.find(public)


def test_messages_in_their_modules() -> None:
    with importer.installed():
        config = importlib.import_module("tensorflow.core.protobuf.rewriter_config_pb2")
        assert config.RewriterConfig(disable_model_pruning=True).disable_model_pruning
        assert importlib.import_module("tensorflow.core.framework.types_pb2").DT_FLOAT == 1


def test_modules_of_1_15_can_wait_until_they_are_used() -> None:
    with importer.installed():
        exec("from tensorflow.python import debug as tf_debug\nfrom tensorflow.contrib import tensorrt", {})
        debug = importlib.import_module("tensorflow.python.debug")
        with pytest.raises(AttributeError, match=r"debug\.LocalCLIDebugWrapperSession is not here: .*--check-numerics"):
            _ = debug.LocalCLIDebugWrapperSession
        waiting = importlib.import_module("tensorflow.python.grappler.tf_optimizer")
        with pytest.raises(AttributeError, match=r"graphmill does not have the module tf\.python\.grappler\.tf_optim"):
            _ = waiting.OptimizeGraph
        with pytest.raises(ImportError, match=r"tf\.python\.nowhere"):
            importlib.import_module("tensorflow.python.nowhere")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("from tensorflow.contrib.factorization import WALSModel", "tf.contrib.factorization.WALSModel"),
        ("from tensorflow.contrib import boosted", "there is no tf.contrib.boosted"),
        ("import tensorflow.nowhere", ""),
    ],
)
def test_why_a_name_cannot_be_imported(line: str, told: str) -> None:
    with importer.installed(), pytest.raises(ImportError) as refused:
        exec(line, {})
    assert programs.leftover(refused.value).startswith(told)
    assert bool(programs.leftover(refused.value)) == bool(told)


def test_helpers_of_internal_modules(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    inspected = modules.module("python.util.tf_inspect")

    def wrapped(a: int, b: int = 2, *, c: int = 3) -> int:
        "Sums."
        return a + b + c

    def one_more(a: int) -> int:
        return wrapped(a) + 1

    assert inspected.getargspec(wrapped) == (["a", "b"], None, None, (2,))
    assert inspected.isfunction(wrapped)
    around = modules.module("python.util.tf_decorator").make_decorator(wrapped, one_more)
    assert (around(1), around.__name__, around.__doc__) == (7, "wrapped", "Sums.")
    assert modules.module("python.util.tf_decorator").unwrap(around) == ([around], wrapped)
    found = modules.module("python.client.device_lib").list_local_devices()
    assert [each.name for each in found if each.device_type == "CPU"] == ["/device:CPU:0"]


def test_a_graph_is_frozen_stripped_and_its_checkpoint_printed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    tools = modules.module("python.tools")
    tf = modules.module("")
    prefix, graph_file = str(tmp_path / "m"), str(tmp_path / "g.pbtxt")
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [2], name="x")
        w = tf.get_variable("w", initializer=[2.0, 3.0])
        tf.multiply(tf.square(x, name="square"), w, name="y")
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, prefix)
        tf.train.write_graph(graph, str(tmp_path), "g.pbtxt")
    with tf.Graph().as_default():
        arguments = (graph_file, "", False, prefix, "y", "", "", str(tmp_path / "f.pb"), True, "")
        frozen = tools.freeze_graph.freeze_graph(*arguments)
    assert (tmp_path / "f.pb").read_bytes() == frozen.SerializeToString()
    assert "VariableV2" not in {node.op for node in frozen.node}
    cut = tools.strip_unused_lib.strip_unused(frozen, ["square"], ["y"], 1)
    assert {node.name: node.op for node in cut.node}["square"] == "Placeholder"
    with pytest.raises(ValueError, match="write the node's name, 'square'"):
        tools.strip_unused_lib.strip_unused(frozen, ["square:0"], ["y"], 1)
    with tf.Graph().as_default(), tf.Session() as session:
        (y,) = tf.import_graph_def(cut, return_elements=["y:0"])
        assert session.run(y, {"import/square:0": [4.0, 9.0]}).tolist() == [8.0, 27.0]
    with tf.Graph().as_default(), pytest.raises(ValueError, match="there is no such checkpoint"):
        tools.freeze_graph.freeze_graph(graph_file, "", False, prefix + "_", "y", "", "", "", True, "")
    with tf.Graph().as_default(), pytest.raises(ValueError, match="expected a binary GraphDef; input_binary"):
        tools.freeze_graph.freeze_graph(graph_file, "", True, prefix, "y", "", "", "", True, "")
    tools.inspect_checkpoint.print_tensors_in_checkpoint_file(prefix, "w", False)
    assert capsys.readouterr().out == "tensor_name:  w\n[2. 3.]\n# Total number of params: 2\n"
    tools.inspect_checkpoint.print_tensors_in_checkpoint_file(prefix, "", False)
    assert capsys.readouterr().out == "w (DT_FLOAT) [2]\n\n# Total number of params: 2\n"
    tools.inspect_checkpoint.print_tensors_in_checkpoint_file(prefix, "v", False)
    assert "v" in capsys.readouterr().out


@pytest.mark.parametrize("first", ["", "import tensorflow.contrib.framework.python.ops.arg_scope\n"])
def test_a_function_hides_the_module_of_its_name(first: str) -> None:
    """As in TensorFlow, where the package takes the function from the module, which it has imported by then."""
    found: dict[str, object] = {}
    package = "tensorflow.contrib.framework.python.ops"
    lines = f"{first}from {package} import arg_scope\nfrom {package}.arg_scope import arg_scope as inside\n"
    with importer.installed():
        exec(lines + f"from {package} import arg_scope as again", found)
    public = names.find("contrib.framework.arg_scope")
    assert found["arg_scope"] is found["inside"] is found["again"] is public

"""Plugins in a program: the sample's op against TensorFlow, every registration, and what a plugin gets wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from toolkit import Graph, Session, read_graph
from toolkit import client as gm
from toolkit.client import ops
from toolkit.client.gradients import registry as gradients
from toolkit.errors import GraphError, GraphmillError, InternalError, UnimplementedError, UsageError
from toolkit.graph import opdefs, plugins
from toolkit.graph.device import DeviceSpec
from toolkit.graph.shapes import registry as shapes
from toolkit.kernels import device_types
from toolkit.kernels import registry as kernels
from toolkit.passes.placement.place import Place

SHRINK = Path(__file__).resolve().parents[2] / "samples" / "shrink_plugin.py"


@pytest.fixture(autouse=True)
def registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Plugins stay loaded for the rest of a process; here each test gets registries of its own."""
    monkeypatch.setattr(opdefs._registry, "_protos", dict(opdefs._registry.protos()))
    for name in ("_added", "_ready", "origins"):
        monkeypatch.setattr(opdefs._registry, name, dict(getattr(opdefs._registry, name)))
    for module in (kernels, shapes, gradients):
        getattr(module, "load", getattr(module, "_load", None))(*(["CPU"] if module is kernels else []))
    kernels.load(kernels.DEFAULT)
    monkeypatch.setattr(kernels, "_kernels", {key: list(found) for key, found in kernels._kernels.items()})
    monkeypatch.setattr(device_types, "_types", dict(device_types._types))
    monkeypatch.setattr(shapes, "_functions", dict(shapes._functions))
    monkeypatch.setattr(gradients, "_entries", dict(gradients._entries))
    monkeypatch.setattr(plugins, "_loaded", {})
    monkeypatch.setattr(plugins, "_installed_are_loaded", False)
    caches = (ops.function, ops._names)  # one by the number of ops, which is the same for other ones here
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()
    for name in [name for name in sys.modules if name.startswith("graphmill_plugin_")]:
        del sys.modules[name]


Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(text: str, name: str = "plugin.py") -> str:
        path = tmp_path / name
        path.write_text("from toolkit.kernels.plugins import *\n" + text)
        return str(path)

    return to_file


# -- the sample -------------------------------------------------------------------------------------------

X = np.array([[0.3, -2.0, 1.5], [-0.4, 0.9, 4.0]])


def shrunk(tf: ModuleType, mode: str, x: Any, threshold: Any) -> Any:
    """The same in TensorFlow's own ops."""
    if mode == "hard":
        return tf.where(tf.abs(x) > threshold, x, tf.zeros_like(x))
    return tf.sign(x) * tf.maximum(tf.abs(x) - threshold, 0)


@pytest.mark.tensorflow
@pytest.mark.parametrize("mode", ["soft", "hard"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_sample_computes_and_differentiates(tf: ModuleType, mode: str, dtype: str) -> None:
    plugins.load(str(SHRINK))
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(dtype, [None, 3], name="x")
        threshold = gm.placeholder(dtype, [], name="threshold")
        y = ops.shrink(x, threshold, mode=mode)
        assert str(y.shape) == "[?,3]"
        found = gm.grad(y * y, [x, threshold])
        ours = Session(graph).run([y, *(g for g in found if g is not None)], {x: X, threshold: 0.8})
    with tf.GradientTape() as tape:
        tx, tt = tf.constant(X, dtype), tf.constant(0.8, dtype)
        tape.watch([tx, tt])
        ty = shrunk(tf, mode, tx, tt)
        loss = ty * ty
    theirs = tape.gradient(loss, [tx, tt] if mode == "soft" else [tx])
    for mine, other in zip(ours, [ty, *theirs], strict=True):
        assert mine.dtype == other.numpy().dtype
        # products and sums of a few numbers, each good to a unit
        tolerance.assert_within(mine, other.numpy(), tolerance.gamma(8) * np.abs(other.numpy()))


@pytest.mark.tensorflow
def test_a_graph_of_tensorflow_with_a_custom_op_runs(tf: ModuleType, tmp_path: Path) -> None:
    """TensorFlow has no kernel for it here, but its protos and Placeholder nodes are its own."""
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        v1.placeholder(tf.float32, [None], name="x")
        tf.constant(0.5, name="threshold")
        definition = graph.as_graph_def()
    node = definition.node.add(name="y", op="Shrink", input=["x", "threshold"])
    node.attr["T"].type = tf.float32.as_datatype_enum
    node.attr["mode"].s = b"hard"
    node.attr["_output_shapes"].list.shape.add().dim.add(size=-1)
    path = tmp_path / "theirs.pb"
    path.write_bytes(definition.SerializeToString())
    plugins.load(str(SHRINK))
    y = Session(read_graph(str(path))).run("y:0", {"x:0": np.float32([0.2, -3, 0.7])})
    assert y.tolist() == np.float32([0, -3, 0.7]).tolist()


def test_a_plugin_is_loaded_once(write: Write) -> None:
    path = write("import builtins\nbuiltins.loads = getattr(builtins, 'loads', 0) + 1\n")
    import builtins

    try:
        first = plugins.load(path)
        assert plugins.load(str(Path(path).parent / "." / "plugin.py")) is first
        assert builtins.loads == 1  # type: ignore[attr-defined]
    finally:
        del builtins.loads  # type: ignore[attr-defined]


def test_a_module_that_was_imported_is_not_run_again(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("define_op('Once')\n", "imported_plugin.py")
    monkeypatch.syspath_prepend(str(Path(path).parent))
    module = __import__("imported_plugin")
    try:
        assert plugins.load(path).module is module
    finally:
        del sys.modules["imported_plugin"]


def test_types_may_be_named(write: Write) -> None:
    path = write(
        """
define_op("TestTwice", ["x: T"], ["y: T"], ["T: type"])

@simple("TestTwice", types={"T": ["float", "DT_INT32"]})
def twice(x):
    return x + x
"""
    )
    plugins.load(path)
    with gm.Graph().as_default() as graph:
        doubled = [gm.ops.test_twice(gm.constant(value)) for value in (np.float32(1.5), np.int32(2))]
        refused = gm.ops.test_twice(gm.constant(np.float64(1)))
    with Session(graph) as session:
        assert session.run(doubled) == [3.0, 4]
        with pytest.raises(UnimplementedError, match="no CPU kernel for TestTwice takes"):
            session.run(refused)


def test_stateful_and_lists(write: Write) -> None:
    """A stateful kernel counts per session; outputs of a list attribute; an op in OpDef text format."""
    path = write('''
define_op("TestTick", [], ["n: int32"], stateful=True)
define_ops_from_text("""op { name: "TestSpread" input_arg { name: "x" type_attr: "T" }
  output_arg { name: "y" type_attr: "T" number_attr: "N" }
  attr { name: "T" type: "type" } attr { name: "N" type: "int" has_minimum: true minimum: 1 } is_stateful: false }""")

class Ticks:
    count = 0

@kernel("TestTick", kind=Kind.STATEFUL)
def tick(op):
    import numpy as np
    def compute(step):
        ticks = step.resources.get_or_create("", op.name, Ticks, Ticks)
        ticks.count += 1
        return np.int32(ticks.count)
    return compute

@kernel("TestSpread")
def spread(op):
    n = op.attr("N")
    return lambda x: [x] * n

@shape_function("TestSpread")
def spread_shape(c):
    return [[7, None]] * c.attr("N")
''')
    plugins.load(path)
    assert opdefs.origin("TestTick") == path and opdefs.origin("Relu") is None
    with gm.Graph().as_default() as graph:
        n = ops.test_tick()
        a, b = ops.test_spread(gm.cast(n, gm.float32), N=2)
        assert str(a.shape) == "[7,?]"
        session = Session(graph)
        assert [session.run([n, b]) for _ in range(2)] == [[1, 1.0], [2, 2.0]]


def test_a_kernel_for_an_op_that_has_one_needs_a_priority(write: Write) -> None:
    path = write("""
@simple("Relu", priority=5, label="mine")
def relu(x):
    return x * 0 + 7
""")
    plugins.load(path)
    with gm.Graph().as_default() as graph:
        y = gm.relu(gm.constant([1.0, 2.0]))
        assert Session(graph).run(y).tolist() == [7, 7]
    found = kernels.candidates("Relu", "CPU")
    assert [k.label for k in found][:1] == ["mine"] and len(found) >= 2


# -- what goes wrong --------------------------------------------------------------------------------------

MISTAKES = [
    ("define_op('Relu')", ":2: the op 'Relu' exists already"),
    ("define_op('TestA')\ndefine_op('TestA')", ":3: the op 'TestA' exists already, from the plugin"),
    ("@simple('TestNone')\ndef f(x): return x", ":2: a kernel for the unknown op 'TestNone'"),
    ("@simple('Rellu')\ndef f(x): return x", "a kernel for the unknown op 'Rellu'; did you mean 'Relu'"),
    ("@shape_function('TestNone')\ndef f(c): return []", "a shape function for the unknown op 'TestNone'"),
    ("@simple('Relu')\ndef f(x): return x", "two CPU kernels for 'Relu' take the same types at priority 0"),
    ("@shape_function('Relu')\ndef f(c): return []", "two shape functions for 'Relu'"),
    ("@gradient('Relu')\ndef f(op, grad): return grad", "two gradients for 'Relu'"),
    ("define_op('TestA', ['x: float'], ['y: float'])\n@simple('TestA')\ndef f(x, y): return x",
     "TestA has 1 input(s); 'f' is declared f(x, y)"),
    ("define_op('TestA', ['x: float'], ['y: float'])\n@kernel('TestA')\ndef f(): return None",
     "a kernel factory takes one argument, the KernelNode; 'f' is declared f()"),
    ("define_op('TestA', ['x: float'], ['y: float'])\n@kernel('TestA', types={'T': []})\ndef f(op): return None",
     "a kernel for TestA constrains 'T', but the op has no such attribute"),
    ("define_op('TestA', ['x: T'], ['y: T'], ['T: type'])\n@simple('TestA', types={'T': ['flaot']})\ndef f(x): 0",
     "'flaot' is not a data type; did you mean 'float'"),
    ("define_op('TestA', ['x: float'], ['y: float'])\n@kernel('TestA', device='DISK')\ndef f(op): return None",
     "a kernel for TestA on 'DISK', which is no device type; expected CPU, NULL"),
    ("define_op('TestA', ['x: float'], ['y: float'])\n@gradient('TestA')\ndef f(op): return None",
     "a gradient of TestA is called with the operation and 1 gradient(s); 'f' is declared f(op)"),
    ("define_op('TestA', ['x: float'], ['y: float'])\n@shape_function('TestA')\ndef f(): return []",
     "a shape function takes one argument"),
    ("define_op('TestA', ['x: float'])\ndefine_ops_from_text('hello')", "not an OpDef in text format"),
    ("define_ops_from_text('')", "no OpDef in the text"),
    ("import no_such_module_at_all", ":2: the plugin failed: ModuleNotFoundError: No module named 'no_such_module"),
    ("def broken(:\n    pass", "plugin.py:2: the plugin is not valid Python"),
    ("def f():\n    return 1 / 0\nf()", ":3: the plugin failed: ZeroDivisionError"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), MISTAKES, ids=[m for _, m in MISTAKES])
def test_mistakes_in_a_plugin_are_one_line_with_its_place(write: Write, text: str, message: str) -> None:
    path = write(text)
    with pytest.raises(GraphmillError) as caught:
        plugins.load(path)
    said = str(caught.value)
    assert said.startswith(path + ":") and message in said and "\n" not in said
    assert not any(name.startswith("graphmill_plugin") for name in sys.modules)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.py", "missing.py: there is no such plugin file"),
        ("ops.so", "ops.so: a compiled op library holds TensorFlow's kernels"),
        ("nothing", "there is no plugin 'nothing': it is neither a Python file nor an installed plugin"),
        (".", "a plugin is a Python file, and this is a folder of them"),
        ("binary.py", "binary.py:1: the plugin is not valid Python: source code string cannot contain null bytes"),
    ],
)
def test_what_is_no_plugin(name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "binary.py").write_bytes(b"\0")
    with pytest.raises(GraphmillError) as caught:
        plugins.load(name)
    assert message in str(caught.value)


def run_op(write: Write, text: str) -> Any:
    plugins.load(write("define_op('TestA', ['x: N * float'], ['y: float'], ['N: int'])\n" + text))
    with gm.Graph().as_default() as graph:
        y = ops.test_a([1.0, 2.0])
        return Session(graph).run(y)


def test_wrong_counts_at_run_time(write: Write) -> None:
    """Where attributes decide the counts, a node tells whether the kernel fits."""
    with pytest.raises(GraphError, match=r"a pure kernel of TestA is called with \(input 0, input 1\); .* f\(x\)"):
        run_op(write, "@kernel('TestA')\ndef factory(op):\n    def f(x): return x\n    return f")


def test_wrong_number_of_outputs(write: Write) -> None:
    with pytest.raises(InternalError, match=r"the kernel of TestA returned 2 output\(s\), not 1"):
        run_op(write, "@simple('TestA')\ndef f(*xs): return list(xs)")


@pytest.mark.parametrize("tokens", [False, True])
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("np.float64(x.sum())", "an array of type float64 as output 0, which is declared as float32"),
        ("x.tolist()[0]", "a float as output 0, which must be an array of type float32"),
        ("None", "None as output 0, which must be an array of type float32"),
    ],
)
def test_outputs_are_what_the_op_declares(write: Write, body: str, said: str, tokens: bool) -> None:
    plugins.load(
        write(
            "import numpy as np\ndefine_op('TestA', ['x: float'], ['y: float'])\n"
            f"@simple('TestA')\ndef f(x): return {body}"
        )
    )
    with gm.Graph().as_default() as graph:
        y = ops.exp(ops.test_a(gm.placeholder(gm.float32, [1], name="x")))
    with Session(graph, force_tokens=tokens) as session, pytest.raises(InternalError) as caught:
        session.run(y, {"x:0": np.ones(1, np.float32)})
    assert caught.value.message == f"the kernel of TestA returned {said}" and caught.value.node == "TestA"


def test_a_factory_that_returns_no_function(write: Write) -> None:
    with pytest.raises(GraphError, match="the kernel factory of TestA must return a function, not 3"):
        run_op(write, "@kernel('TestA')\ndef f(op): return 3")


def test_a_shape_function_that_fails(write: Write) -> None:
    with pytest.raises(GraphError, match="the shape function of TestA failed: ZeroDivisionError"):
        run_op(write, "@shape_function('TestA')\ndef f(c): return [1 // 0]")


def test_wrong_number_of_shapes(write: Write) -> None:
    with pytest.raises(GraphError, match=r"returned 0 shape\(s\) for 1 output\(s\)"):
        run_op(write, "@shape_function('TestA')\ndef f(c): return []")


def test_an_unknown_op_names_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "g.pbtxt"
    path.write_text('node { name: "y" op: "VendorFusedThing" }')
    with pytest.raises(GraphError, match=r"unknown op 'VendorFusedThing'.*--plugin FILE.py"):
        Session(read_graph(str(path))).run("y:0")


# -- installed plugins ------------------------------------------------------------------------------------


class _Entry(metadata.EntryPoint):
    pass


@pytest.fixture
def installed(write: Write, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Pretends that a package with this text as its plugin is installed."""

    def install(text: str) -> None:
        path = write(text, "installed_plugin.py")
        monkeypatch.syspath_prepend(str(Path(path).parent))
        entry = metadata.EntryPoint("vendor", "installed_plugin", plugins.GROUP)
        monkeypatch.setattr(plugins, "_entry_points", lambda: [entry])

    yield install
    sys.modules.pop("installed_plugin", None)


VENDOR = """
define_op("VendorTwice", ["x: float"], ["y: float"])

@simple("VendorTwice")
def twice(x):
    return x + x
"""


def test_an_unknown_op_loads_installed_plugins(installed: Callable[[str], None]) -> None:
    installed(VENDOR)
    assert "installed_plugin" not in sys.modules
    with gm.Graph().as_default() as graph:
        y = ops.vendor_twice(gm.constant([1.5]))
        assert Session(graph).run(y).tolist() == [3]
    assert opdefs.origin("VendorTwice") == "plugin 'vendor'"
    assert [p.name for p in plugins.loaded()] == ["vendor"]


def test_known_ops_load_nothing(installed: Callable[[str], None]) -> None:
    installed(VENDOR)
    with gm.Graph().as_default() as graph:
        y = gm.relu(gm.constant([-1.5]))
        assert Session(graph).run(y).tolist() == [0]
    assert "installed_plugin" not in sys.modules


def test_an_installed_plugin_by_name(installed: Callable[[str], None]) -> None:
    installed(VENDOR)
    assert plugins.load("vendor") is plugins.load("vendor")
    with pytest.raises(UsageError, match="did you mean 'vendor'"):
        plugins.load("vender")


def test_an_installed_plugin_that_fails_says_which(installed: Callable[[str], None]) -> None:
    installed("raise RuntimeError('no licence')")
    with pytest.raises(GraphmillError, match=r"plugin 'vendor'.*installed_plugin.py:2: the plugin failed: RuntimeErr"):
        opdefs.find("VendorTwice")


# -- a device type ----------------------------------------------------------------------------------------

BOXES = """
import functools
class Box(DeviceArray):
    def __init__(self, memory, content):
        self.memory, self.content = memory, content
        self.dtype, self.shape, self.nbytes = content.dtype, content.shape, content.nbytes
class Boxes:
    def __init__(self, index): pass
    def copy_in(self, array): return Box(self, array)
    def copy_out(self, array): return array.content
    def owns(self, value): return isinstance(value, Box) and value.memory is self
    def synchronize(self): pass
    def statistics(self): return MemoryStatistics()
register_device(DeviceType("BOX", packages=(), like="GPU", memory=functools.cache(Boxes)))
@simple("Relu", device="BOX")
def relu(x): return Box(x.memory, x.content.clip(0))
"""


def boxed() -> Graph:
    """A graph for the device BOX, which has a kernel of Relu and none of Tanh."""
    with gm.Graph().as_default() as graph, graph.device("/device:BOX:0"):
        gm.tanh(ops.relu(gm.placeholder(gm.float32, [2], name="x"), name="h"), name="y")
    return Graph.from_proto(graph.as_graph_def())


def test_a_device_type_and_its_kernels(write: Write) -> None:
    plugins.load(write(BOXES))
    with Session(boxed(), devices={"BOX": 1}, precision="exact") as session:
        np.testing.assert_array_equal(session.run("y:0", {"x:0": [-1.0, 1.0]}), np.tanh(np.float32([0, 1])))
        assert [line.partition(" asked")[0] for line in session.moved()] == ["Tanh 'y'"]
    devices = [DeviceSpec.parse(f"/job:localhost/replica:0/task:0/device:{name}:0") for name in ("CPU", "BOX")]
    placed = Place(devices, allow_soft_placement=True).apply(boxed())
    assert {node.name: node.device[-5:] for node in placed.graph} == {"x": "BOX:0", "h": "BOX:0", "y": "CPU:0"}
    with pytest.raises(GraphError, match=r"'y': Tanh \(float32\) has no kernel for BOX"):
        Place(devices).apply(boxed())


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("Box(x.memory, x.content.clip(0))", "x.content",
         "node 'h': the kernel of Relu returned a NumPy array as output 0, which must be in the memory of .*BOX:0"),
        ("Box(x.memory, ", "Box(Boxes(0), ",
         "node 'h': the kernel of Relu returned a Box as output 0, which must be in the memory of .*BOX:0"),
        ("def synchronize", "def synchronise", "the memory of BOX:0, a Boxes, has no method synchronize"),
        ("__init__(self, index)", "__init__(self)", "the memory of BOX:0 cannot be made: TypeError: "),
    ],
)  # fmt: skip
def test_what_a_device_may_have_wrong(write: Write, right: str, wrong: str, message: str) -> None:
    plugins.load(write(BOXES.replace(right, wrong)))
    with pytest.raises(GraphmillError, match=message), Session(boxed(), devices={"BOX": 1}) as session:
        session.run("y:0", {"x:0": [-1.0, 1.0]})

"""Python functions inside of graphs, and functions whose nodes are not TensorFlow's: they compute what its do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.tf1 import call_scope, node_oracle
from toolkit import tensorflow as ours
from toolkit.errors import InvalidArgumentError, OutOfRangeError, UnimplementedError, UnknownError, UsageError

#: lines of code that leave tensors in `result`
BOTH = {
    "py_func": """
result = tf.py_func(lambda a, b: (a + b, np.int64(len(a))), [tf.ones([3]), 2.0], [tf.float32, tf.int64])
""",
    "py_func of strings": "result = tf.py_func(lambda s: s + b'!', [tf.constant('a')], tf.string)",
    "py_func of lists of strings": """
result = tf.py_func(lambda s: np.array([x.decode() for x in s]), [tf.constant(['a', 'bc'])], tf.string)
""",
    "py_func without results": """
seen = []
with tf.control_dependencies([tf.py_func(lambda x: seen.append(x), [1.0], [])]):
    result = tf.constant(1)
""",
    "stateless": "result = tf.py_func(np.sort, [tf.constant([3.0, 1.0])], tf.float32, stateful=False, name='s')",
    "numpy_function": "result = tf.numpy_function(np.cumsum, [tf.constant([3.0, 1.0])], tf.float32)",
    "a decorator": """
@tf.numpy_function(Tout=tf.float32)
def double(x):
    return x * np.float32(2)
result = double(tf.constant(3.0))
""",
    "py_function": """
def f(x, y):
    if x > y:
        return [tf.square(x) * y, tf.shape(x)]
    return [x + y.numpy(), tf.shape(y)]
x, y = tf.constant(3.0), tf.constant(2.0)
a, n = tf.py_function(f, [x, y], [tf.float32, tf.int32])
b, _ = tf.py_function(f, [y, x], [tf.float32, tf.int32])
result = [a, b, n]
""",
    "gradients of py_function": """
x, y = tf.constant([3.0, 1.0]), tf.constant([2.0, 5.0])
z = tf.py_function(lambda x, y: x * x * y if x[0] > 0 else y, [x, y], tf.float32)
z.set_shape([2])
gradient = tf.gradients(tf.reduce_sum(z * z), [x, y])
result = [z, gradient]
""",
    "switch_case": """
branches = [lambda: tf.constant(1), lambda: tf.constant(2)]
result = [tf.switch_case(tf.constant(k), branches) for k in (-1, 0, 1, 5)]
""",
    "switch_case by number": """
branches = {1: lambda: tf.constant(1.0), 0: lambda: tf.constant(2.0)}
result = [tf.switch_case(tf.constant(k), branches, lambda: tf.constant(9.0)) for k in (0, 1, 2)]
""",
    "vectorized_map": """
x = tf.reshape(tf.range(6.0), [3, 2])
pair = tf.vectorized_map(lambda p: (p[0] * 2, p[1]), (x, tf.range(3)))
result = [tf.vectorized_map(lambda r: tf.reduce_sum(r), x), pair]
""",
    "recompute_grad": """
def f(x):
    return tf.square(tf.sin(x))
x = tf.constant([1.0, 2.0])
result = [tf.recompute_grad(f)(x), tf.gradients(tf.recompute_grad(f)(x), x)]
""",
    "ctc_loss_v2": """
r = np.random.RandomState(1)
logits = tf.constant(r.randn(6, 2, 5).astype('f'))
labels, n, m = tf.constant([[1, 2, 2], [3, 1, 0]]), tf.constant([3, 2]), tf.constant([6, 5])
loss = tf.nn.ctc_loss_v2(labels, logits, n, m)
other = tf.nn.ctc_loss_v2(labels, tf.transpose(logits, [1, 0, 2]), n, m, False, blank_index=-1)
result = [loss, tf.gradients(loss, logits), other]
""",
    "sparse labels": """
r = np.random.RandomState(1)
logits = tf.constant(r.randn(6, 2, 5).astype('f'))
labels = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 2, 3], [2, 2])
result = tf.nn.ctc_loss_v2(labels, logits, None, tf.constant([6, 5]), blank_index=0)
""",
    "einsum": """
r = np.random.RandomState(2)
x, y, z = [tf.constant(r.randn(*s)) for s in ((2, 3, 4), (4, 5), (5, 2))]
result = [tf.einsum('bij,jk,kb->bi', x, y, z), tf.einsum('...j,jk,kl', x, y, z), tf.einsum('ij,jk,kl->', x[0], y, z)]
""",
    "a section": """
v = tf.Variable(1.0, name='v', use_resource=True)
section = tf.CriticalSection()
def add():
    with tf.control_dependencies([v.assign_add(2.0)]):
        return v.read_value()
result = section.execute(add)
""",
}  # fmt: skip


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", BOTH)
def test_values_are_those_of_tensorflow(name: str) -> None:
    with node_oracle.semantics():
        wanted = call_scope.values(node_oracle.theirs(), BOTH[name])["values"]
    got = call_scope.values(ours, BOTH[name])["values"]
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted, strict=True):
        if isinstance(other, str):
            assert one == other
        else:
            assert one[0] == other[0]
            # sums of a few numbers in float32; what cancels is as wrong as what it was made of
            np.testing.assert_allclose(one[1], other[1], rtol=1e-5, atol=1e-5 * max(map(abs, other[1]), default=0.0))


def _run(make: Callable[[], Any]) -> Any:
    with ours.Graph().as_default(), ours.Session() as session:
        return session.run(make())


def test_what_python_raises_becomes_a_status() -> None:
    def raising(error: Exception) -> Callable[[], Any]:
        def function() -> Any:
            raise error

        return lambda: ours.py_func(function, [], ours.float32)

    for error, status in (
        (ValueError("odd"), InvalidArgumentError), (StopIteration("end"), OutOfRangeError),
        (NotImplementedError("no"), UnimplementedError), (KeyError("k"), UnknownError),
    ):  # fmt: skip
        with pytest.raises(status, match=rf"pyfunc_\d+ raised {type(error).__name__}: ") as caught:
            _run(raising(error))
        assert caught.value.__cause__ is error and "\n" not in str(caught.value)


def test_results_are_of_the_types_that_were_said() -> None:
    with pytest.raises(InvalidArgumentError, match=r"value 0 .* is of float64, expected float32; return value.astype"):
        _run(lambda: ours.py_func(lambda: 1.0, [], ours.float32))
    with pytest.raises(InvalidArgumentError, match=r"returned 2 value\(s\), expected 1"):
        _run(lambda: ours.py_func(lambda: (1, 2), [], ours.int64))
    with pytest.raises(InvalidArgumentError, match="expected string"):
        _run(lambda: ours.py_func(lambda: 1, [], ours.string))
    with pytest.raises(UsageError, match="3 is no function"):
        ours.py_func(3, [], ours.int64)
    with pytest.raises(TypeError, match="needs the types of the results"):
        ours.py_function(lambda: 1, [])


def test_a_function_may_have_a_gradient_of_its_own() -> None:
    @ours.RegisterGradient("SevenTimesWherePositive")
    def back(op: Any, grad: Any) -> Any:
        return grad * ours.cast(op.inputs[0] > 0, ours.float32) * 7.0

    assert callable(back)
    with ours.Graph().as_default() as graph, ours.Session() as session:
        x = ours.constant([-1.0, 2.0])
        with graph.gradient_override_map({"PyFunc": "SevenTimesWherePositive"}):
            y = ours.py_func(lambda v: np.maximum(v, 0), [x], ours.float32)
        y.set_shape([2])
        assert session.run(ours.gradients(y, x))[0].tolist() == [0.0, 7.0]


def test_inputs_are_copies() -> None:
    def spoil(x: Any) -> Any:
        x[0] = 9.0
        return x

    with ours.Graph().as_default(), ours.Session() as session:
        constant = ours.constant([1.0, 2.0])
        spoilt = ours.py_func(spoil, [constant], ours.float32)
        assert session.run([constant, spoilt, constant])[2].tolist() == [1.0, 2.0]


def test_a_graph_that_was_read_has_no_functions() -> None:
    graph = ours.Graph()
    with graph.as_default():
        ours.py_func(lambda x: x, [1.0], ours.float32, name="f")
    message = graph.as_graph_def()
    message.node[-1].attr["token"].s = b"pyfunc_of_another_process"
    imported = ours.Graph()
    with imported.as_default():
        ours.import_graph_def(message, name="")
    with ours.Session(graph=imported) as session, pytest.raises(UnimplementedError, match="calls a Python function of"):
        session.run("f:0")


def test_a_section_is_not_entered_inside_of_itself() -> None:
    with ours.Graph().as_default():
        section = ours.CriticalSection(name="s")
        with pytest.raises(UsageError, match="'s' is entered inside of itself"):
            section.execute(lambda: section.execute(lambda: ours.constant(1)))


def test_two_sections_do_not_share_a_variable() -> None:
    with ours.Graph().as_default():
        v = ours.Variable(1.0, use_resource=True)
        ours.CriticalSection(name="a").execute(lambda: v.assign_add(1.0))
        with pytest.raises(UsageError, match="used in the section 'b' and in 'a'"):
            ours.CriticalSection(name="b").execute(lambda: v.assign_add(1.0))


def test_sections_exclude_each_other_in_threads() -> None:
    import threading

    with ours.Graph().as_default():
        v = ours.Variable(0, use_resource=True)

        def add() -> Any:
            before = v.read_value()
            with ours.control_dependencies([before]):
                after = ours.py_func(lambda x: x + np.int32(1), [before], ours.int32)
            return v.assign(ours.reshape(after, []))

        step = ours.CriticalSection().execute(add)
        with ours.Session() as session:
            session.run(v.initializer)
            threads = [threading.Thread(target=lambda: [session.run(step) for _ in range(10)]) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert session.run(v) == 40


def test_mistakes_are_one_line() -> None:
    with ours.Graph().as_default():
        x = ours.placeholder(ours.float32, [2, 3])
        for make, kind, match in (
            (lambda: ours.einsum("ij,jk->ik", x), UsageError, r"is about 2 tensor\(s\), got 1"),
            (lambda: ours.einsum("ij->ii", x), UsageError, "has 'i' twice"),
            (lambda: ours.einsum("ij->k", x), UsageError, "has 'k', which no tensor has"),
            (lambda: ours.einsum("i1->i", x), UsageError, "is no equation"),
            (lambda: ours.einsum("ijk,kl,lm->i", x, x, x), UsageError, "does not fit the shape"),
            (lambda: ours.sort(x, direction="UP"), UsageError, "expected ASCENDING or DESCENDING"),
            (lambda: ours.searchsorted(x, x, "middle"), UsageError, "expected left or right"),
            (lambda: ours.repeat(x, 2, 5), UsageError, "axis 5 is out of range"),
            (lambda: ours.print(x, output_stream=3), UsageError, "3 is no stream"),
            (lambda: ours.switch_case(1, []), TypeError, "expected an integer tensor"),
            (ours.enable_tensor_equality, NotImplementedError, "TensorFlow 2's behaviour"),
        ):
            with pytest.raises(kind, match=match) as caught:
                make()
            assert "\n" not in str(caught.value)


def test_modules_hold_variables() -> None:
    class Dense(ours.Module):
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope:
                self.w = ours.Variable(1.0, name="w")
            self.parts = [ours.Variable(2.0, trainable=False, name="b"), Inner()]

    class Inner(ours.Module):
        def __init__(self) -> None:
            super().__init__(name="inner")
            self.v = ours.Variable(3.0)

    with ours.Graph().as_default():
        module = Dense()
        assert (module.name, module.w.op.name, len(module.variables)) == ("dense", "dense/w", 3)
        assert len(module.trainable_variables) == 2 and [m.name for m in module.submodules] == ["inner"]
        with pytest.raises(ValueError, match="no name for a module"):
            ours.Module("a b")


def test_checks_do_not_go_into_loops() -> None:
    with ours.Graph().as_default():
        ours.while_loop(lambda x: x < 3.0, lambda x: x + 1.0, [ours.constant(0.0)])
        with pytest.raises(UsageError, match="inside of a conditional or a loop"):
            ours.add_check_numerics_ops()

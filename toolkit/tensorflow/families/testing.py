# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.test: test cases with sessions, and what their assertions compare."""

from __future__ import annotations

import os
import random
import re
import tempfile
import threading
import unittest
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

from toolkit.client import context
from toolkit.client.graph_stack import innermost
from toolkit.errors import GraphmillError, OpError
from toolkit.tensorflow.families import session as sessions
from toolkit.tensorflow.families.graph import Graph


class TestCase(unittest.TestCase):
    """A test with a session. Each test has a default graph of its own, and the same random numbers.

    Values that are compared may be tensors and variables: the default session computes them.
    """

    def setUp(self) -> None:
        super().setUp()
        self._cached: Any = None
        random.seed(_SEED)
        import numpy as np

        np.random.seed(_SEED)
        # a graph of its own, whatever is around: tests may run inside of a program
        made = Graph()
        made.seed = _SEED
        self._graph = ExitStack()
        if innermost() is None:  # so that a test may reset its default graph
            self._graph.callback(context.replace_default_graph, context.replace_default_graph(made))
        else:
            self._graph.enter_context(made.as_default())

    def tearDown(self) -> None:
        if self._cached is not None:
            self._cached.close()
            self._cached = None
        self._graph.close()
        super().tearDown()

    # -- sessions and folders ---------------------------------------------------------------------------------------

    def get_temp_dir(self) -> str:
        """A folder of this test, which is made once."""
        if not hasattr(self, "_folder"):
            self._folder = tempfile.mkdtemp()
        return self._folder

    @contextmanager
    def session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Generator[Any]:
        """A session of its own, closed at the end of the block."""
        with sessions.Session(graph=graph, config=config) as made, _cpu(use_gpu or force_gpu):
            yield made

    @contextmanager
    def cached_session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Generator[Any]:
        """The session of the test, which lives until its end: its variables keep their values.

        Raises:
            ValueError: it was asked for with another graph or config before.
        """
        if self._cached is None:
            self._cached = sessions.Session(graph=graph, config=config)
            self._cached_of = (graph, config)
        elif self._cached_of != (graph, config):
            raise ValueError("the cached session of this test has another graph or config; use session()")
        with self._cached.graph.as_default(), self._cached.as_default(), _cpu(use_gpu or force_gpu):
            yield self._cached

    @contextmanager
    def test_session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Generator[Any]:
        """Without a graph the cached session, else one of its own."""
        opened = self.cached_session if graph is None else self.session
        with opened(graph, config, use_gpu, force_gpu) as made:
            yield made

    # it is no test of its own
    test_session.__test__ = False  # type: ignore[attr-defined]

    def evaluate(self, tensors: Any) -> Any:
        """The values of a structure of tensors, in the default session."""
        return _evaluated(tensors)

    def evaluate_if_both_tensors(self, a: Any, b: Any) -> tuple[Any, Any]:
        both = hasattr(a, "graph") and hasattr(b, "graph")
        return (self.evaluate(a), self.evaluate(b)) if both else (a, b)

    def checkedThread(self, target: Callable[..., Any], args: Any = None, kwargs: Any = None) -> Any:  # noqa: N802
        """A thread whose `join` fails the test when it has raised."""
        return _Checked(self, target, tuple(args or ()), dict(kwargs or {}))

    @contextmanager
    def captureWritesToStream(self, stream: Any) -> Generator[Any]:  # noqa: N802
        """What is written to a stream inside of the block, of the process and of libraries: `captured.contents()`."""
        number = stream.fileno()
        kept = os.dup(number)
        with tempfile.TemporaryFile() as file:
            stream.flush()
            os.dup2(file.fileno(), number)
            captured = _Captured(file)
            try:
                yield captured
            finally:
                stream.flush()
                os.dup2(kept, number)
                os.close(kept)
                captured.keep()

    # -- arrays -------------------------------------------------------------------------------------------------------

    def assertAllClose(  # noqa: N802
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None
    ) -> None:
        """Numbers in the same structure and of the same shapes are close."""
        a, b = _evaluated(a), _evaluated(b)
        if isinstance(a, Mapping) or isinstance(b, Mapping):
            self.assertIsInstance(a, Mapping, msg)
            self.assertIsInstance(b, Mapping, msg)
            self.assertEqual(sorted(a), sorted(b), msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, f"at '{key}'{_more(msg)}")
            return
        if isinstance(a, list | tuple) and not _plain(a, b):
            self.assertEqual(len(a), len(b), msg)
            for index, (x, y) in enumerate(zip(a, b, strict=True)):
                self.assertAllClose(x, y, rtol, atol, f"at {index}{_more(msg)}")
            return
        _compare(self, a, b, msg, "close", lambda np, x, y: np.isclose(x, y, rtol, atol, equal_nan=True))

    def assertNotAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None) -> None:  # noqa: N802
        try:
            self.assertAllClose(a, b, rtol, atol)
        except AssertionError:
            return
        raise self.failureException(f"the values are close{_more(msg)}")

    def assertAllCloseAccordingToType(  # noqa: N802
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, float_rtol: float = 1e-6,
        float_atol: float = 1e-6, half_rtol: float = 1e-3, half_atol: float = 1e-3, bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2, msg: Any = None,
    ) -> None:  # fmt: skip
        """As assertAllClose, with the tolerances of the least exact type."""
        import numpy as np

        a, b = np.asarray(_evaluated(a)), np.asarray(_evaluated(b))
        for kind, rel, ab in (
            ("float32", float_rtol, float_atol), ("complex64", float_rtol, float_atol),
            ("float16", half_rtol, half_atol), ("bfloat16", bfloat16_rtol, bfloat16_atol),
        ):  # fmt: skip
            if kind in (a.dtype.name, b.dtype.name):
                rtol, atol = max(rtol, rel), max(atol, ab)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:  # noqa: N802
        """Arrays of the same shape have the same elements; NaN equals NaN."""

        def same(np: Any, x: Any, y: Any) -> Any:
            equal = x == y
            floats = x.dtype.kind in "fc" and y.dtype.kind in "fc"
            return np.logical_or(equal, np.isnan(x) & np.isnan(y)) if floats else equal

        _compare(self, _evaluated(a), _evaluated(b), msg, "equal", same)

    def assertNotAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:  # noqa: N802
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        raise self.failureException(f"the values are all equal{_more(msg)}")

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: Any = None) -> None:  # noqa: N802
        import numpy as np

        distance = float(np.linalg.norm(np.asarray(ndarray1) - np.asarray(ndarray2)))
        self.assertLess(distance, err, f"the arrays are {distance} apart{_more(msg)}")

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: Any = None) -> None:  # noqa: N802
        self.assertEqual(len(farray1), len(farray2), msg)
        for one, other in zip(farray1, farray2, strict=True):
            self.assertNear(float(one), float(other), err, msg)

    def assertNear(self, f1: float, f2: float, err: float, msg: Any = None) -> None:  # noqa: N802
        self.assertTrue(f1 == f2 or abs(f1 - f2) <= err, f"{f1} and {f2} differ by more than {err}{_more(msg)}")

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        self._all(a, "greater than", comparison_target, lambda x, y: x > y)

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        self._all(a, "at least", comparison_target, lambda x, y: x >= y)

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        self._all(a, "less than", comparison_target, lambda x, y: x < y)

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        self._all(a, "at most", comparison_target, lambda x, y: x <= y)

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:  # noqa: N802
        import numpy as np

        other = set(np.asarray(_evaluated(target)).ravel().tolist()) - set(expected_set)
        self.assertFalse(other, f"{sorted(other, key=str)[:5]} are none of {expected_set}")

    def assertAllInRange(  # noqa: N802
        self, target: Any, lower_bound: Any, upper_bound: Any, open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:  # fmt: skip
        (self.assertAllGreater if open_lower_bound else self.assertAllGreaterEqual)(target, lower_bound)
        (self.assertAllLess if open_upper_bound else self.assertAllLessEqual)(target, upper_bound)

    def _all(self, a: Any, what: str, target: Any, holds: Callable[[Any, Any], Any]) -> None:
        import numpy as np

        array = np.asarray(_evaluated(a))
        wrong = array[~holds(array, _evaluated(target))]
        self.assertFalse(wrong.size, f"{wrong.ravel()[:5]} are not {what} {target}")

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: Any = None) -> None:  # noqa: N802
        """Tensors, or tensors and arrays, have the same shape."""
        self.assertEqual(_shape(input_a), _shape(input_b), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:  # noqa: N802
        import numpy as np

        found = np.dtype(getattr(target.dtype, "as_numpy_dtype", target.dtype))
        self.assertEqual(found, np.dtype(getattr(expected_dtype, "as_numpy_dtype", expected_dtype)))

    # -- errors, messages, devices ---------------------------------------------------------------------------------

    @contextmanager
    def assertRaisesWithPredicateMatch(  # noqa: N802
        self, exception_type: Any, expected_err_re_or_predicate: Any
    ) -> Generator[None]:
        """An error of a type inside of the block, for which a function says True or whose text an expression finds."""
        try:
            yield
        except exception_type as error:
            text = str(error)
            op = getattr(error, "op", None)
            if isinstance(error, OpError) and op is not None:
                text += f" [{getattr(op, 'name', op)}]"
            rule = expected_err_re_or_predicate
            holds = rule(error) if callable(rule) else re.search(rule, text) is not None
            self.assertTrue(holds, f"another {type(error).__name__} than expected: {text}")
        else:
            self.fail(f"{getattr(exception_type, '__name__', exception_type)} was not raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> AbstractContextManager[None]:  # noqa: N802
        return self.assertRaisesWithPredicateMatch(GraphmillError, expected_err_re_or_predicate)

    def assertRaisesIncompatibleShapesError(  # noqa: N802
        self, exception_type: Any = GraphmillError, callable_obj: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        return self.assertRaises(exception_type, callable_obj, *args, **kwargs)  # type: ignore[arg-type]

    def assertProtoEquals(self, expected_message_maybe_ascii: Any, message: Any, msg: Any = None) -> None:  # noqa: N802
        """A message equals another one, or one in text form."""
        from google.protobuf import text_format

        expected = expected_message_maybe_ascii
        if isinstance(expected, str | bytes):
            expected = text_format.Parse(expected, type(message)())
        self.assertEqual(text_format.MessageToString(expected), text_format.MessageToString(message), msg)

    def assertProtoEqualsVersion(  # noqa: N802
        self, expected: Any, actual: Any, producer: int = 2286, min_consumer: int = 0, msg: Any = None
    ) -> None:
        """A GraphDef in text form without versions equals one, but for its versions."""
        from google.protobuf import text_format

        wanted = text_format.Parse(expected, type(actual)())
        wanted.versions.CopyFrom(actual.versions)
        self.assertProtoEquals(wanted, actual, msg)

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: Any = None) -> None:  # noqa: N802
        from toolkit.graph.device import DeviceSpec

        self.assertEqual(str(DeviceSpec.parse(str(device1 or ""))), str(DeviceSpec.parse(str(device2 or ""))), msg)

    def assertStartsWith(self, actual: str, expected_start: str, msg: Any = None) -> None:  # noqa: N802
        self.assertTrue(
            actual.startswith(expected_start), f"'{actual}' does not start with '{expected_start}'{_more(msg)}"
        )

    def assertEndsWith(self, actual: str, expected_end: str, msg: Any = None) -> None:  # noqa: N802
        self.assertTrue(actual.endswith(expected_end), f"'{actual}' does not end with '{expected_end}'{_more(msg)}")

    def assertNotStartsWith(self, actual: str, unexpected_start: str, msg: Any = None) -> None:  # noqa: N802
        self.assertFalse(
            actual.startswith(unexpected_start), f"'{actual}' starts with '{unexpected_start}'{_more(msg)}"
        )

    def assertNotEndsWith(self, actual: str, unexpected_end: str, msg: Any = None) -> None:  # noqa: N802
        self.assertFalse(actual.endswith(unexpected_end), f"'{actual}' ends with '{unexpected_end}'{_more(msg)}")

    def assertIsSubclass(self, cls: type, superclass: Any, msg: Any = None) -> None:  # noqa: N802
        self.assertTrue(issubclass(cls, superclass), f"{cls} is no subclass of {superclass}{_more(msg)}")

    def assertNotIsSubclass(self, cls: type, superclass: Any, msg: Any = None) -> None:  # noqa: N802
        self.assertFalse(issubclass(cls, superclass), f"{cls} is a subclass of {superclass}{_more(msg)}")

    # -- of the test library that TensorFlow's cases stand on --------------------------------------------------------

    def assertItemsEqual(self, first: Iterable[Any], second: Iterable[Any], msg: Any = None) -> None:  # noqa: N802
        self.assertCountEqual(first, second, msg)

    def assertSameElements(self, expected_seq: Any, actual_seq: Any, msg: Any = None) -> None:  # noqa: N802
        self.assertEqual(set(expected_seq), set(actual_seq), msg)

    def assertEmpty(self, container: Any, msg: Any = None) -> None:  # noqa: N802
        self.assertEqual(len(container), 0, msg)

    def assertNotEmpty(self, container: Any, msg: Any = None) -> None:  # noqa: N802
        self.assertNotEqual(len(container), 0, msg)

    def assertLen(self, container: Any, expected_len: int, msg: Any = None) -> None:  # noqa: N802
        self.assertEqual(len(container), expected_len, msg)

    def assertBetween(self, value: Any, minv: Any, maxv: Any, msg: Any = None) -> None:  # noqa: N802
        self.assertTrue(minv <= value <= maxv, f"{value} is not between {minv} and {maxv}{_more(msg)}")

    def assertSequenceAlmostEqual(  # noqa: N802
        self, expected_seq: Any, actual_seq: Any, places: Any = None, msg: Any = None, delta: Any = None
    ) -> None:
        self.assertEqual(len(expected_seq), len(actual_seq), msg)
        for one, other in zip(expected_seq, actual_seq, strict=True):
            self.assertAlmostEqual(one, other, places, msg, delta)

    def assertContainsSubset(self, expected_subset: Any, actual_set: Any, msg: Any = None) -> None:  # noqa: N802
        lacking = set(expected_subset) - set(actual_set)
        self.assertFalse(lacking, f"{lacking} are not in {actual_set}{_more(msg)}")

    def assertNoCommonElements(self, expected_seq: Any, actual_seq: Any, msg: Any = None) -> None:  # noqa: N802
        both = set(expected_seq) & set(actual_seq)
        self.assertFalse(both, f"{both} are in both{_more(msg)}")

    def assertRaisesWithLiteralMatch(self, expected_exception: Any, expected_exception_message: str) -> Any:  # noqa: N802
        return self.assertRaisesRegex(expected_exception, "^" + re.escape(expected_exception_message) + "$")

    def assertRegexMatch(self, actual_str: str, regexes: Any, message: Any = None) -> None:  # noqa: N802
        self.assertTrue(
            any(re.search(each, actual_str) for each in regexes), f"'{actual_str}' fits none{_more(message)}"
        )

    def assertDictAlmostEqual(self, d1: Any, d2: Any, places: int = 5, msg: Any = None) -> None:  # noqa: N802
        self.assertEqual(sorted(d1), sorted(d2), msg)
        for key in d1:
            self.assertAlmostEqual(d1[key], d2[key], places, msg)

    assertEquals = unittest.TestCase.assertEqual  # noqa: N815
    assertNotEquals = unittest.TestCase.assertNotEqual  # noqa: N815
    assertRaisesRegexp = unittest.TestCase.assertRaisesRegex  # noqa: N815
    assertRegexpMatches = unittest.TestCase.assertRegex  # noqa: N815
    assertNotRegexpMatches = unittest.TestCase.assertNotRegex  # noqa: N815
    assertAlmostEquals = unittest.TestCase.assertAlmostEqual  # noqa: N815
    assertNotAlmostEquals = unittest.TestCase.assertNotAlmostEqual  # noqa: N815
    assert_ = unittest.TestCase.assertTrue
    failUnless = unittest.TestCase.assertTrue  # noqa: N815
    failIf = unittest.TestCase.assertFalse  # noqa: N815
    failUnlessEqual = unittest.TestCase.assertEqual  # noqa: N815
    failIfEqual = unittest.TestCase.assertNotEqual  # noqa: N815
    failUnlessAlmostEqual = unittest.TestCase.assertAlmostEqual  # noqa: N815
    failIfAlmostEqual = unittest.TestCase.assertNotAlmostEqual  # noqa: N815
    failUnlessRaises = unittest.TestCase.assertRaises  # noqa: N815


#: what every test's random numbers start from, as in TensorFlow: programs rely on the values
_SEED = 87654321


def _cpu(anything: bool) -> AbstractContextManager[Any]:
    from toolkit.client.scopes import device

    return nullcontext() if anything else device("/device:CPU:0")


def _evaluated(value: Any) -> Any:
    """Values in the place of tensors and variables, in structures too."""
    if hasattr(value, "graph") and hasattr(value, "eval"):
        return value.eval()
    if isinstance(value, Mapping):
        return {key: _evaluated(each) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_evaluated(each) for each in value))
    if isinstance(value, list | tuple):
        return type(value)(_evaluated(each) for each in value)
    return value


def _plain(a: Any, b: Any) -> bool:
    """Whether lists are arrays of numbers."""
    import numpy as np

    try:
        return np.asarray(a).dtype.kind in "biufc" and np.asarray(b).dtype.kind in "biufc"
    except ValueError:
        return False


def _more(msg: Any) -> str:
    return f": {msg}" if msg else ""


def _array(value: Any) -> Any:
    import numpy as np

    array = np.asarray(value)
    return (
        np.array([each.encode() if isinstance(each, str) else each for each in array.ravel().tolist()], object).reshape(
            array.shape
        )
        if array.dtype.kind in "USO"
        else array
    )


def _compare(test: Any, a: Any, b: Any, msg: Any, what: str, holds: Callable[[Any, Any, Any], Any]) -> None:
    import numpy as np

    a, b = _array(a), _array(b)
    test.assertEqual(a.shape, b.shape, f"the shapes {a.shape} and {b.shape} differ{_more(msg)}")
    right = np.asarray(holds(np, a, b), bool)
    if right.all():
        return
    wrong = np.argwhere(~right)
    shown = ", ".join(f"{a[tuple(at)]} and {b[tuple(at)]} at {at.tolist()}" for at in wrong[:3])
    raise test.failureException(f"{len(wrong)} of {a.size} elements are not {what}: {shown}{_more(msg)}")


def _shape(value: Any) -> list[Any]:
    shape = value.static_shape if hasattr(value, "static_shape") else value.shape
    return list(shape.as_list()) if hasattr(shape, "as_list") else list(shape)


class _Checked:
    """A thread whose error is the test's."""

    def __init__(self, test: TestCase, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]):
        self._test, self._error = test, None
        self._thread = threading.Thread(target=self._run, args=(target, args, kwargs))

    def _run(self, target: Callable[..., Any], args: Any, kwargs: Any) -> None:
        try:
            target(*args, **kwargs)
        except BaseException as error:
            self._error = error

    def start(self) -> None:
        self._thread.start()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def join(self) -> None:
        self._thread.join()
        if self._error is not None:
            self._test.fail(f"a thread has raised {type(self._error).__name__}: {self._error}")


class _Captured:
    def __init__(self, file: Any):
        self._file, self._text = file, ""

    def keep(self) -> None:
        self._file.seek(0)
        self._text = self._file.read().decode()

    def contents(self) -> str:
        return self._text


# -- functions ------------------------------------------------------------------------------------------------------


def assert_equal_graph_def(
    actual: Any, expected: Any, checkpoint_v2: bool = False, hash_table_shared_name: bool = False
) -> None:
    """
    Raises:
        TypeError: one is no GraphDef; AssertionError: they have other nodes.
    """
    for each in (actual, expected):
        if not hasattr(each, "node") or not hasattr(each, "versions"):
            raise TypeError(f"a GraphDef is compared, not {type(each).__name__}")
    ours, theirs = ({node.name: node for node in graph.node} for graph in (actual, expected))
    names = sorted(ours.keys() ^ theirs.keys())
    if names:
        raise AssertionError(f"only one of the graphs has the node '{names[0]}' ({len(names)} such nodes)")
    for name, node in ours.items():
        if node != theirs[name]:
            raise AssertionError(f"the node '{name}' differs:\\n{node}\\nand\\n{theirs[name]}".replace("\\n", "\n"))


def compute_gradient(
    x: Any, x_shape: Any, y: Any, y_shape: Any, x_init_value: Any = None, delta: float = 1e-3, init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> Any:  # fmt: skip
    """The Jacobian of y by x, [size of x, size of y], by its gradient and by differences; a list for a list of x."""
    many = isinstance(x, list)
    values = [x_init_value] if not many else list(x_init_value or [None] * len(x))
    found = [
        _jacobians(one, shape, y, y_shape, value, delta, init_targets, extra_feed_dict)
        for one, shape, value in zip(x if many else [x], x_shape if many else [x_shape], values, strict=True)
    ]
    return found if many else found[0]


def compute_gradient_error(
    x: Any, x_shape: Any, y: Any, y_shape: Any, x_init_value: Any = None, delta: float = 1e-3, init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> float:  # fmt: skip
    """The largest difference between the two Jacobians of `compute_gradient`."""
    import numpy as np

    found = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    pairs = found if isinstance(found, list) else [found]
    return max((float(np.abs(a - b).max()) if a.size else 0.0) for a, b in pairs)


def _jacobians(
    x: Any, x_shape: Any, y: Any, y_shape: Any, value: Any, delta: float, targets: Any, extra: Any
) -> tuple[Any, Any]:
    import numpy as np

    from toolkit.client import array_ops, session_stack
    from toolkit.client.gradients import gradients
    from toolkit.client.tensor import IndexedSlices

    session: Any = session_stack.session_for(None, x.graph, "compute_gradient")
    kind = x.dtype.base.numpy
    rows, columns = int(np.prod(x_shape)), int(np.prod(y_shape))
    with x.graph.as_default():
        seed = array_ops.placeholder(y.dtype.base, list(y_shape))
        slope = gradients(y, [x], seed)[0]
    if targets is not None:
        session.run(targets)
    if value is None:
        value = np.random.random_sample(x_shape).astype(kind)
    value = np.asarray(value, kind)
    feeds = dict(extra or {})
    exact, measured = np.zeros((rows, columns), kind), np.zeros((rows, columns), kind)
    for column in range(columns):
        unit = np.zeros(columns, y.dtype.base.numpy)
        unit[column] = 1
        if slope is None:
            continue
        dense: Any = slope
        if isinstance(slope, IndexedSlices):
            dense = slope.to_tensor()
        exact[:, column] = session.run(dense, {x: value, seed: unit.reshape(y_shape), **feeds}).ravel()
    for row in range(rows):
        step = np.zeros(rows, kind)
        step[row] = delta
        above, below = (
            session.run(y, {x: (value.ravel() + sign * step).reshape(x_shape), **feeds}) for sign in (1, -1)
        )
        measured[row] = ((above - below) / (2 * delta)).ravel()
    return exact, measured


def create_local_cluster(
    num_workers: int, num_ps: int, protocol: str = "grpc", worker_config: Any = None, ps_config: Any = None
) -> tuple[list[Any], list[Any]]:
    """Servers of workers and of parameter servers, all in this process; their sessions share the variables."""
    from toolkit.tensorflow.families import cluster

    jobs = {"worker": num_workers, "ps": num_ps}
    spec = cluster.ClusterSpec({job: [f"localhost:{n}" for n in range(count)] for job, count in jobs.items() if count})
    made = cluster.local_servers(
        spec, {job: n for job, n in jobs.items() if n}, {"worker": worker_config, "ps": ps_config}
    )
    return made.get("worker", []), made.get("ps", [])


def is_built_with_gpu_support() -> bool:
    return False


def is_built_with_rocm() -> bool:
    return False


def is_built_with_xla() -> bool:
    return False


def is_cpu_target_available(target: str) -> bool:
    """Whether code is made for a processor: "x86" and "aarch64" are what machines are."""
    import platform

    machine = platform.machine().lower()
    return {"x86_64": "x86", "amd64": "x86", "arm64": "aarch64"}.get(machine, machine) == target


def with_eager_op_as_function(cls: Any = None, only_as_function: bool = False) -> Any:
    """A decorator that changes nothing: nothing runs eagerly."""
    return cls if cls is not None else lambda each: each


def disable_with_predicate(pred: Callable[[], bool], skip_message: str) -> Any:
    """A decorator that skips a test when a function says True."""

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            if pred():
                self.skipTest(skip_message)
            return test(self, *args, **kwargs)

        return wrapped

    return decorate


class StubOutForTesting:
    """Puts other values in the place of attributes, and takes them back in the end."""

    def __init__(self) -> None:
        self._kept: list[tuple[Any, str, Any]] = []
        self._smart: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> StubOutForTesting:
        return self

    def __exit__(self, *exc: object) -> None:
        self.CleanUp()

    def __del__(self) -> None:
        self.CleanUp()

    def Set(self, parent: Any, child_name: str, new_child: Any) -> None:  # noqa: N802
        """Set an attribute that there is."""
        old = vars(parent).get(child_name, getattr(parent, child_name))
        self._kept.append((parent, child_name, old))
        setattr(parent, child_name, new_child)

    def SmartSet(self, obj: Any, attr_name: str, new_attr: Any) -> None:  # noqa: N802
        """Set an attribute where it is defined: in the object, or in a class that it comes from."""
        homes = [obj] if attr_name in getattr(obj, "__dict__", {}) else list(getattr(obj, "__mro__", type(obj).__mro__))
        home = next((each for each in homes if attr_name in vars(each)), None)
        if home is None:
            raise AttributeError(f"{obj!r} has no attribute '{attr_name}'")
        self._smart.append((home, attr_name, vars(home)[attr_name]))
        setattr(home, attr_name, new_attr)

    def UnsetAll(self) -> None:  # noqa: N802
        """Take back what `Set` has set."""
        while self._kept:
            setattr(*self._kept.pop())

    def SmartUnsetAll(self) -> None:  # noqa: N802
        """Take back what `SmartSet` has set."""
        while self._smart:
            setattr(*self._smart.pop())

    def CleanUp(self) -> None:  # noqa: N802
        self.SmartUnsetAll()
        self.UnsetAll()

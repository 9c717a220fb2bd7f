# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.test.TestCase: a test with a session and a graph of its own."""

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

from toolkit.client.construction import context
from toolkit.client.construction.graph_stack import innermost
from toolkit.errors import GraphmillError, OpError
from toolkit.tensorflow.families.framework import session as sessions
from toolkit.tensorflow.families.framework.graph import Graph
from toolkit.tensorflow.families.testing.compared_values import compare, evaluated, is_numeric, more, shape_of


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
        return evaluated(tensors)

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
        a, b = evaluated(a), evaluated(b)
        if isinstance(a, Mapping) or isinstance(b, Mapping):
            self.assertIsInstance(a, Mapping, msg)
            self.assertIsInstance(b, Mapping, msg)
            self.assertEqual(sorted(a), sorted(b), msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, f"at '{key}'{more(msg)}")
            return
        if isinstance(a, list | tuple) and not is_numeric(a, b):
            self.assertEqual(len(a), len(b), msg)
            for index, (x, y) in enumerate(zip(a, b, strict=True)):
                self.assertAllClose(x, y, rtol, atol, f"at {index}{more(msg)}")
            return
        compare(self, a, b, msg, "close", lambda np, x, y: np.isclose(x, y, rtol, atol, equal_nan=True))

    def assertNotAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None) -> None:  # noqa: N802
        try:
            self.assertAllClose(a, b, rtol, atol)
        except AssertionError:
            return
        raise self.failureException(f"the values are close{more(msg)}")

    def assertAllCloseAccordingToType(  # noqa: N802
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, float_rtol: float = 1e-6,
        float_atol: float = 1e-6, half_rtol: float = 1e-3, half_atol: float = 1e-3, bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2, msg: Any = None,
    ) -> None:  # fmt: skip
        """As assertAllClose, with the tolerances of the least exact type."""
        import numpy as np

        a, b = np.asarray(evaluated(a)), np.asarray(evaluated(b))
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

        compare(self, evaluated(a), evaluated(b), msg, "equal", same)

    def assertNotAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:  # noqa: N802
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        raise self.failureException(f"the values are all equal{more(msg)}")

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: Any = None) -> None:  # noqa: N802
        import numpy as np

        distance = float(np.linalg.norm(np.asarray(ndarray1) - np.asarray(ndarray2)))
        self.assertLess(distance, err, f"the arrays are {distance} apart{more(msg)}")

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: Any = None) -> None:  # noqa: N802
        self.assertEqual(len(farray1), len(farray2), msg)
        for one, other in zip(farray1, farray2, strict=True):
            self.assertNear(float(one), float(other), err, msg)

    def assertNear(self, f1: float, f2: float, err: float, msg: Any = None) -> None:  # noqa: N802
        self.assertTrue(f1 == f2 or abs(f1 - f2) <= err, f"{f1} and {f2} differ by more than {err}{more(msg)}")

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

        other = set(np.asarray(evaluated(target)).ravel().tolist()) - set(expected_set)
        self.assertFalse(other, f"{sorted(other, key=str)[:5]} are none of {expected_set}")

    def assertAllInRange(  # noqa: N802
        self, target: Any, lower_bound: Any, upper_bound: Any, open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:  # fmt: skip
        (self.assertAllGreater if open_lower_bound else self.assertAllGreaterEqual)(target, lower_bound)
        (self.assertAllLess if open_upper_bound else self.assertAllLessEqual)(target, upper_bound)

    def _all(self, a: Any, what: str, target: Any, holds: Callable[[Any, Any], Any]) -> None:
        import numpy as np

        array = np.asarray(evaluated(a))
        wrong = array[~holds(array, evaluated(target))]
        self.assertFalse(wrong.size, f"{wrong.ravel()[:5]} are not {what} {target}")

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: Any = None) -> None:  # noqa: N802
        """Tensors, or tensors and arrays, have the same shape."""
        self.assertEqual(shape_of(input_a), shape_of(input_b), msg)

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
            actual.startswith(expected_start), f"'{actual}' does not start with '{expected_start}'{more(msg)}"
        )

    def assertEndsWith(self, actual: str, expected_end: str, msg: Any = None) -> None:  # noqa: N802
        self.assertTrue(actual.endswith(expected_end), f"'{actual}' does not end with '{expected_end}'{more(msg)}")

    def assertNotStartsWith(self, actual: str, unexpected_start: str, msg: Any = None) -> None:  # noqa: N802
        self.assertFalse(actual.startswith(unexpected_start), f"'{actual}' starts with '{unexpected_start}'{more(msg)}")

    def assertNotEndsWith(self, actual: str, unexpected_end: str, msg: Any = None) -> None:  # noqa: N802
        self.assertFalse(actual.endswith(unexpected_end), f"'{actual}' ends with '{unexpected_end}'{more(msg)}")

    def assertIsSubclass(self, cls: type, superclass: Any, msg: Any = None) -> None:  # noqa: N802
        self.assertTrue(issubclass(cls, superclass), f"{cls} is no subclass of {superclass}{more(msg)}")

    def assertNotIsSubclass(self, cls: type, superclass: Any, msg: Any = None) -> None:  # noqa: N802
        self.assertFalse(issubclass(cls, superclass), f"{cls} is a subclass of {superclass}{more(msg)}")

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
        self.assertTrue(minv <= value <= maxv, f"{value} is not between {minv} and {maxv}{more(msg)}")

    def assertSequenceAlmostEqual(  # noqa: N802
        self, expected_seq: Any, actual_seq: Any, places: Any = None, msg: Any = None, delta: Any = None
    ) -> None:
        self.assertEqual(len(expected_seq), len(actual_seq), msg)
        for one, other in zip(expected_seq, actual_seq, strict=True):
            self.assertAlmostEqual(one, other, places, msg, delta)

    def assertContainsSubset(self, expected_subset: Any, actual_set: Any, msg: Any = None) -> None:  # noqa: N802
        lacking = set(expected_subset) - set(actual_set)
        self.assertFalse(lacking, f"{lacking} are not in {actual_set}{more(msg)}")

    def assertNoCommonElements(self, expected_seq: Any, actual_seq: Any, msg: Any = None) -> None:  # noqa: N802
        both = set(expected_seq) & set(actual_seq)
        self.assertFalse(both, f"{both} are in both{more(msg)}")

    def assertRaisesWithLiteralMatch(self, expected_exception: Any, expected_exception_message: str) -> Any:  # noqa: N802
        return self.assertRaisesRegex(expected_exception, "^" + re.escape(expected_exception_message) + "$")

    def assertRegexMatch(self, actual_str: str, regexes: Any, message: Any = None) -> None:  # noqa: N802
        self.assertTrue(
            any(re.search(each, actual_str) for each in regexes), f"'{actual_str}' fits none{more(message)}"
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
    from toolkit.client.construction.scopes import device

    return nullcontext() if anything else device("/device:CPU:0")


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

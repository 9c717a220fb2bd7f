"""Datasets of Python generators: nodes, elements and mistakes beside TensorFlow's."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from tests.tf1 import call_scope, node_oracle
from tests.tf1.calls import separated
from toolkit import tensorflow as ours

SAME_NODES = separated("""
d = tf.data.Dataset.from_generator(lambda: [1], tf.int64, [])
---
d = tf.data.Dataset.from_generator(lambda: [(1, 'a')], (tf.int64, tf.string), ([], [])).repeat(2).batch(3)
tf.data.make_initializable_iterator(d).get_next()
---
specs = {'a': tf.TensorSpec([], tf.int32), 'b': tf.TensorSpec([1], tf.float32)}
d = tf.data.Dataset.from_generator(lambda: [{'a': 1, 'b': [2.0]}], output_signature=specs)
tf.data.make_one_shot_iterator(d).get_next()
""")


@pytest.mark.tensorflow
@pytest.mark.parametrize("code", SAME_NODES)
def test_nodes_are_tensorflows(code: str) -> None:
    assert not node_oracle.differences(code)


ELEMENTS = separated("""
def g():
  for i in range(5): yield i, 'x' * i
d = tf.data.Dataset.from_generator(g, (tf.int64, tf.string), ([], [])).repeat(2).batch(3)
---
def g(n, m):
  for i in range(n): yield {'a': i, 'b': [m, m]}
types, shapes = {'a': tf.int32, 'b': tf.float32}, {'a': [], 'b': [2]}
d = tf.data.Dataset.from_generator(g, types, shapes, args=[tf.constant(3), 4.0])
---
d = tf.data.Dataset.from_generator(lambda: [[1, 2], [3]], tf.int32, [None]).padded_batch(2, [None])
---
d = tf.data.Dataset.from_generator(lambda: iter([1.5, 2.5]), tf.float32).map(lambda x: x * 2)
---
d = tf.data.Dataset.from_generator(lambda: [], tf.float32)
---
d = tf.data.Dataset.from_generator(lambda: [[1, 2], [1, 2, 3]], tf.int64, [2])
---
d = tf.data.Dataset.from_generator(lambda: ['a'], tf.int64)
---
d = tf.data.Dataset.from_generator(lambda: [(1, 2)], (tf.int64, tf.int64, tf.int64))
---
def g():
  yield 1
  raise ValueError('bad')
d = tf.data.Dataset.from_generator(g, tf.int64)
---
def g():
  yield 1
  raise KeyError('bad')
d = tf.data.Dataset.from_generator(g, tf.int64)
""")


def _elements(tf: Any, code: str) -> list[Any]:
    """The elements, and the type of the error that ended them."""
    found: list[Any] = []
    with tf.Graph().as_default(), tf.Session() as session:
        names: dict[str, Any] = call_scope.scope(tf)  # pyright: ignore  # untyped, as 3.7 runs it
        exec(compile(code, "<call>", "exec"), names)
        iterator = tf.data.make_initializable_iterator(names["d"])
        element = iterator.get_next()
        session.run(iterator.initializer)
        try:
            while True:
                found.append(repr(session.run(element)))
        except tf.errors.OpError as error:
            return [*found, type(error).__name__]


@pytest.mark.tensorflow
@pytest.mark.parametrize("code", ELEMENTS)
def test_elements_are_tensorflows(code: str) -> None:
    with node_oracle.semantics():
        wanted = _elements(node_oracle.theirs(), code)
    assert _elements(ours, code) == wanted


MISTAKES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no function": (lambda dataset: dataset.from_generator(3, ours.int64), "is a function"),
    "no types": (lambda dataset: dataset.from_generator(lambda: [1]), "needs output_types"),
    "types twice": (
        lambda dataset: dataset.from_generator(
            lambda: [1], ours.int64, output_signature=ours.TensorSpec([], ours.int64)
        ),
        "give it, or output_types",
    ),
    "no specs": (lambda dataset: dataset.from_generator(lambda: [1], output_signature=[3]), "of TensorSpecs"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told(name: str) -> None:
    make, said = MISTAKES[name]
    with ours.Graph().as_default(), pytest.raises(TypeError, match=said):
        make(ours.data.Dataset)


def test_passes_do_not_see_each_other() -> None:
    with ours.Graph().as_default(), ours.Session() as session:
        dataset = ours.data.Dataset.from_generator(lambda: range(3), ours.int64, [])
        first, second = (ours.data.make_initializable_iterator(dataset) for _ in range(2))
        elements = first.get_next(), second.get_next()
        session.run([first.initializer, second.initializer])
        assert session.run(elements[0]) == 0 and session.run(elements[0]) == 1
        assert session.run(elements[1]) == 0 and session.run(elements[0]) == 2


def test_generators_go_with_their_graph() -> None:
    class Source:
        def __call__(self) -> Any:
            return iter([1])

    source = Source()
    kept = weakref.ref(source)
    with ours.Graph().as_default() as graph:
        ours.data.Dataset.from_generator(source, ours.int64, [])
    del source
    assert kept() is not None
    del graph
    gc.collect()
    assert kept() is None

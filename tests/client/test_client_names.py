"""The client makes the nodes that TensorFlow makes: names, ops, inputs, attributes, devices."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.client import client_programs
from tests.client.node_descriptions import described
from toolkit import client as gm

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("program", client_programs.PROGRAMS, ids=lambda program: program.__name__)
def test_same_nodes_as_tensorflow(tf: ModuleType, program: Callable[[Any], None]) -> None:
    theirs = tf.Graph()
    with theirs.as_default(), client_programs.tf1_semantics(tf):
        program(client_programs.tf_namespace(tf))
    ours = gm.Graph()
    with ours.as_default():
        program(client_programs.our_namespace())
    expected = described(theirs.as_graph_def().node)
    found = described(ours.as_graph_def().node)
    if program.__name__ in client_programs.OTHER_ORDER:
        expected.sort()
        found.sort()
    assert [n[:2] for n in found] == [n[:2] for n in expected]
    for mine, wanted in zip(found, expected, strict=True):
        assert mine == wanted

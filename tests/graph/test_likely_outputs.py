"""Which of the tensors that nothing takes are results."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.graph_pb2 import GraphDef
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.shape import Shape
from toolkit.graph.summary import likely_outputs

F = dtypes.float32


@pytest.mark.tensorflow
@pytest.mark.parametrize("lower", [True, False])
def test_frozen_gru_has_one_result(tf: Any, lower: bool) -> None:
    import keras
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    layers = keras.layers
    model = keras.Sequential([layers.Input((5, 3)), layers.GRU(4, return_sequences=True), layers.GRU(2)])
    call = tf.function(lambda x: model(x, training=False)).get_concrete_function(tf.TensorSpec([None, 5, 3], "float32"))
    frozen = convert_variables_to_constants_v2(call, lower_control_flow=lower)
    proto = GraphDef.FromString(frozen.graph.as_graph_def().SerializeToString())
    assert likely_outputs(MetaGraph(Graph.from_proto(proto))) == ["Identity:0"]


def test_results_of_an_input_come_first() -> None:
    graph = Graph()
    step = graph.add("VarHandleOp", "step", attrs={"dtype": F, "shape": Shape([])})
    read = graph.add("ReadVariableOp", "r", [step], attrs={"dtype": F})
    graph.add("Neg", "rate", [read], attrs={"T": F})
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])})
    graph.add("Tanh", "y", [x], attrs={"T": F})
    graph.add("Abs", "z", [x], attrs={"T": F})
    assert likely_outputs(MetaGraph(graph)) == ["y:0", "z:0", "rate:0"]

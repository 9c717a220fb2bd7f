"""Small models of the kinds that people export, each written once and exported in every form there is.

A model is a function of TensorFlow, its weights and its inputs; `tests.runtime.gallery_*` write them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from commands.main import run
from tests import perturbation
from tests.runtime.networks.network_case import check_outputs
from tests.runtime.saved_models.saved_model_case import check_saved_model, command_feeds, read_outputs
from toolkit.formats.models.model import read_model
from toolkit.runtime.saving.saver import Saver
from toolkit.runtime.session import Session

Call = Callable[[Any, SimpleNamespace, SimpleNamespace], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Example:
    """A model: `call(tf, weights, inputs)` gives its outputs by label.

    Attributes:
        fixed: inputs of one shape; the others may have any size along every axis.
    """

    call: Call
    weights: Mapping[str, Any]
    inputs: Mapping[str, Any]
    fixed: tuple[str, ...]


EXAMPLES: dict[str, Example] = {}


def example(
    inputs: Mapping[str, Any], weights: Mapping[str, Any] | None = None, *, fixed: tuple[str, ...] = (),
) -> Callable[[Call], Call]:  # fmt: skip
    """Register a function as a model with these inputs and weights."""

    def register(call: Call) -> Call:
        assert call.__name__ not in EXAMPLES, call.__name__
        EXAMPLES[call.__name__] = Example(call, weights or {}, inputs, fixed)
        return call

    return register


def _specs(tf: ModuleType, model: Example) -> list[Any]:
    specs: list[Any] = []
    for name, value in model.inputs.items():
        array = np.asarray(value)
        kind = tf.string if array.dtype.kind in "SUO" else tf.as_dtype(array.dtype)
        shape = array.shape if name in model.fixed else [None] * array.ndim
        specs.append(tf.TensorSpec(shape, kind, name=name))
    return specs


def _module(tf: ModuleType, model: Example) -> Any:
    module = tf.Module()
    module.held = {name: tf.Variable(value, name=name) for name, value in model.weights.items()}

    def serve(*values: Any) -> dict[str, Any]:
        given = SimpleNamespace(**dict(zip(model.inputs, values, strict=True)))
        return model.call(tf, SimpleNamespace(**module.held), given)

    module.serve = tf.function(serve, input_signature=_specs(tf, model))
    return module


def expected(tf: ModuleType, model: Example) -> dict[str, Any]:
    """TensorFlow's own answer."""
    module = _module(tf, model)
    answer = module.serve(*[tf.constant(value) for value in model.inputs.values()])
    return {label: np.asarray(value.numpy()) for label, value in answer.items()}


# -- the forms -------------------------------------------------------------------------------------------


def as_saved_model(tf: ModuleType, model: Example, folder: Path) -> None:
    module = _module(tf, model)
    tf.saved_model.save(module, str(folder / "model"), signatures=module.serve)
    check_saved_model(tf, folder / "model", model.inputs)


def as_frozen(tf: ModuleType, model: Example, folder: Path, lower: bool = False) -> None:
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    module = _module(tf, model)  # which the variables live as long as
    concrete = module.serve.get_concrete_function()
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=lower)
    tf.io.write_graph(frozen.graph.as_graph_def(), str(folder), "frozen.pb", as_text=False)
    labels = sorted(concrete.structured_outputs)
    fetches = {label: tensor.name for label, tensor in zip(labels, frozen.outputs, strict=True)}
    _check(tf, model, folder, "frozen.pb", fetches)


def as_lowered(tf: ModuleType, model: Example, folder: Path) -> None:
    as_frozen(tf, model, folder, lower=True)


def as_meta_graph(tf: ModuleType, model: Example, folder: Path, resource: bool = False) -> None:
    """A MetaGraph of TensorFlow 1 with its checkpoint: Switch and Merge with ref variables, else functions."""
    v1 = tf.compat.v1
    (v1.enable_control_flow_v2 if resource else v1.disable_control_flow_v2)()
    try:
        with v1.Graph().as_default(), v1.Session() as session:
            specs = _specs(tf, model)
            given = SimpleNamespace(**{s.name: v1.placeholder(s.dtype, s.shape, name=s.name) for s in specs})
            held = {
                name: v1.get_variable(name, initializer=tf.constant(value), use_resource=resource)
                for name, value in model.weights.items()
            }
            tensors = model.call(tf, SimpleNamespace(**held), given)
            fetches = {label: tensor.name for label, tensor in tensors.items()}
            if held:
                session.run(v1.global_variables_initializer())
                v1.train.Saver().save(session, str(folder / "model"))
            else:
                v1.train.export_meta_graph(str(folder / "model.meta"))
    finally:
        v1.enable_control_flow_v2()
    _check(tf, model, folder, "model.meta", fetches, *(["--checkpoint", str(folder / "model")] if held else []))


def as_resource_meta_graph(tf: ModuleType, model: Example, folder: Path) -> None:
    as_meta_graph(tf, model, folder, resource=True)


FORMS = {
    "saved_model": as_saved_model, "frozen": as_frozen, "lowered": as_lowered,
    "meta_graph": as_meta_graph, "resource_meta_graph": as_resource_meta_graph,
}  # fmt: skip


def _check(tf: ModuleType, model: Example, folder: Path, file: str, fetches: dict[str, str], *options: str) -> None:
    wanted = expected(tf, model)
    path = str(folder / file)
    feeds = {f"{name}:0": value for name, value in model.inputs.items()}
    command = ["run", path, *options, *command_feeds(folder, feeds), "--out", str(folder / "outputs.npz")]
    for name in fetches.values():
        command += ["--fetch", name]
    assert run(command) == 0
    written = read_outputs(folder / "outputs.npz")
    read = read_model(path)

    def work(session: Session) -> list[Any]:
        if options:
            Saver(read.meta).restore(session, options[1])
        return session.run(list(fetches.values()), feeds)

    with Session(read) as session:
        again = dict(zip(fetches, work(session), strict=True))
    ours = [{label: written[name] for label, name in fetches.items()}, again]
    check_outputs(ours, wanted, lambda: dict(zip(fetches, perturbation.of_work(read, work), strict=True)))

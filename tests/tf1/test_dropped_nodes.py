"""What only TensorFlow 1.15 had makes its nodes, or computes what it computed (tests/tf1/dropped)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.tf1 import call_scope, dropped, node_oracle
from toolkit import tensorflow as ours
from toolkit.tensorflow import api, names

CALLS = [(family, name) for family in dropped.FAMILIES for name in dropped.calls(family)]


@pytest.mark.parametrize(("family", "name"), CALLS, ids=[name for _, name in CALLS])
def test_functions_make_the_nodes_of_1_15(family: str, name: str) -> None:
    for code in dropped.calls(family)[name]:
        wanted = dropped.recorded(family).get(code)
        assert wanted is not None, f"not recorded; run: python -m tests.tf1.record PYTHON {family}\n{code}"
        got = node_oracle.described(node_oracle.graph_of(ours, code), across_releases=True)
        found = node_oracle.difference(wanted, got)
        assert bool(found) == (code in dropped.differing(family)), f"{code}\n" + "\n".join(found)


#: of float32 arithmetic in another order, over a few dozen steps; as for programs
RTOL = 1e-4
VALUES = [(family, name) for family in dropped.FAMILIES for name in dropped.values(family)]


@pytest.mark.parametrize(("family", "name"), VALUES, ids=[name for _, name in VALUES])
def test_what_is_computed_is_what_1_15_computes(family: str, name: str) -> None:
    bits = dropped.rounded_to(family, name)
    rtol = RTOL if bits is None else 1 / (2**bits - 1)  # a step: numbers at its edge fall to either side
    for code in dropped.values(family)[name]:
        wanted = dropped.recorded(family).get(code)
        assert wanted is not None, f"not recorded; run: python -m tests.tf1.record PYTHON {family}\n{code}"
        got: dict[str, list[Any]] = call_scope.values(ours, code)
        assert got["variables"] == wanted["variables"], code
        assert len(got["values"]) == len(wanted["values"])
        for one, other in zip(got["values"], wanted["values"], strict=True):
            if isinstance(other, str):
                assert one == other, code
            else:
                assert one[0] == other[0], code
                # what cancels is as wrong as what it was made of
                np.testing.assert_allclose(one[1], other[1], rtol=rtol, atol=rtol * _scale(other[1]), err_msg=code)


def _scale(numbers: list[float]) -> float:
    """The largest finite number: what cancels is as wrong as what it was."""
    return max((abs(number) for number in numbers if np.isfinite(number)), default=0.0)


def test_every_dropped_function_is_called_at_least_twice() -> None:
    called = {name: len(dropped.calls(family)[name]) for family, name in CALLS}
    called |= {name: len(dropped.values(family)[name]) for family, name in VALUES}
    rows = [name for name in names.table() if name in set(api.dropped())]
    functions = [name for name in rows if (fact := api.fact(name)) is not None and fact.kind == "function"]
    lacking = sorted(name for name in functions if called.get(name, 0) < 2 and name not in ELSEWHERE)
    assert not lacking, "functions without two calls in tests/tf1/dropped: " + " ".join(lacking)


#: functions that add no node, or whose work is not seen in a graph, and where they are tested
ELSEWHERE: dict[str, str] = {"contrib.training.parse_values": "makes no node: tests/client/test_hyperparameters"}
ELSEWHERE.update(
    {
        name: "makes no node: tests/client/test_documents"
        for name in names.table()
        if name.startswith("contrib.learn.preprocessing.")
    }
)
ELSEWHERE["contrib.tensorboard.plugins.projector.visualize_embeddings"] = "makes no node: test_projector"
ELSEWHERE.update(
    {
        name: "what the methods of Dataset do: test_pipelines"
        for name in names.table()
        if name.startswith(("data.experimental.", "contrib.data."))
    }
)
ELSEWHERE.update(dict.fromkeys(
    (
        "estimator.inputs.pandas_input_fn", "estimator.experimental.build_raw_supervised_input_receiver_fn",
        "estimator.experimental.dnn_logit_fn_builder", "estimator.experimental.linear_logit_fn_builder",
    ),
    "parts of estimators: test_estimators",
))  # fmt: skip


ELSEWHERE.update(dict.fromkeys(
    (
        "estimator.add_metrics", "contrib.estimator.add_metrics", "contrib.estimator.forward_features",
        "contrib.estimator.clip_gradients_by_norm", "contrib.estimator.call_logit_fn",
        "contrib.estimator.export_saved_model_for_mode", "contrib.estimator.export_all_saved_models",
        "contrib.estimator.build_supervised_input_receiver_fn_from_input_fn", "estimator.experimental.call_logit_fn",
        "estimator.experimental.make_early_stopping_hook",
        "estimator.experimental.make_stop_at_checkpoint_step_hook", "estimator.experimental.stop_if_higher_hook",
        "estimator.experimental.stop_if_lower_hook", "estimator.experimental.stop_if_no_decrease_hook",
        "estimator.experimental.stop_if_no_increase_hook",
    ),
    "estimators, hooks and optimizers: test_estimators_of_others",
))  # fmt: skip
ELSEWHERE.update(dict.fromkeys(
    (
        "contrib.training.bucket", "contrib.training.bucket_by_sequence_length", "contrib.training.rejection_sample",
        "contrib.training.stratified_sample", "contrib.training.byte_size_load_fn",
        "contrib.predictor.from_estimator", "contrib.predictor.from_saved_model",
    ),
    "queues, sessions, files: test_contrib_input",
))  # fmt: skip
ELSEWHERE.update({name: "what the machine has: test_testing" for name in names.table() if name.startswith("config.")})
ELSEWHERE.update(dict.fromkeys(
    ("contrib.training.evaluate_once", "contrib.training.evaluate_repeatedly", "contrib.training.train",
     "contrib.training.get_or_create_eval_step", "contrib.training.wait_for_new_checkpoint",
     "contrib.training.checkpoints_iterator"),
    "sessions, loops and files: test_testing",
))  # fmt: skip


ELSEWHERE.update(
    {
        name: "estimators, arrays and files: test_contrib_learn"
        for name in names.table()
        if name.startswith("contrib.learn.") and not name.startswith("contrib.learn.preprocessing.")
    }
)
ELSEWHERE.update(
    {
        f"contrib.slim.nets.resnet_v{version}.resnet_v{version}_{layers}": "as resnet_50: tests/client/test_networks"
        for version in (1, 2)
        for layers in (101, 152, 200)
    }
)


ELSEWHERE.update(
    {
        name: "what writes files in steps: test_contrib_summary"
        for name in names.table()
        if name.startswith("contrib.summary.")
    }
)

ELSEWHERE.update(
    dict.fromkeys(
        (
            "contrib.gan.gan_train", "contrib.gan.get_joint_train_hooks", "contrib.gan.get_sequential_train_hooks",
            "contrib.gan.get_sequential_train_steps",
        ),
        "sessions and hooks: test_contrib_gan",
    )
)  # fmt: skip


def test_calls_are_of_names_that_were_there() -> None:
    # what internal modules and Keras have is in no list of names: that it was there is what recording it shows
    public = [name for family, name in [*CALLS, *VALUES] if family not in ("internal", "keras")]
    gone = [name for name in public if api.fact(name) is None]
    assert not gone, "not among the names of TensorFlow 1.15: " + " ".join(gone)


def test_recorded_calls_are_calls() -> None:
    for family in dropped.FAMILIES:
        both = [*dropped.calls(family).values(), *dropped.values(family).values()]
        codes = {code for found in both for code in found}
        assert dropped.recorded(family).keys() <= codes, f"recorded and called no more, in {family}: record anew"
        assert dropped.differing(family).keys() <= codes

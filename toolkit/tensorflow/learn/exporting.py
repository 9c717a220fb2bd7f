# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""SavedModels of estimators of tf.contrib.learn: inputs, signatures, and strategies that say when to write them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

from toolkit.client.arrays import array_ops
from toolkit.client.construction import context
from toolkit.client.construction.grouping import group
from toolkit.client.inputs.parsing import parse_example
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys
from toolkit.tensorflow.estimators import estimator as core
from toolkit.tensorflow.estimators.export_folders import copy_extra, timestamped
from toolkit.tensorflow.estimators.export_outputs import DEFAULT_KEY
from toolkit.tensorflow.estimators.model_functions import arguments_of
from toolkit.tensorflow.families.framework import internal_tools, variables
from toolkit.tensorflow.families.framework.saved_model import SavedModelBuilder
from toolkit.tensorflow.families.framework.session import Session
from toolkit.tensorflow.families.train import saver as savers
from toolkit.tensorflow.learn.keys import MetricKey, PredictionKey, ProblemType
from toolkit.tensorflow.learn.model_fn_ops import ModelFnOps, signature_of

#: what the inputs are called that every signature can be given, and the outputs where a model has no heads
_INPUTS, _OUTPUTS = "default_input_alternative", "default_output_alternative"
#: the collection of the names of features
_FEATURES = "input_feature_keys"


class GraphRewriteSpec(NamedTuple):
    """A graph of an export: its tags, and what is done to it."""

    tags: Any
    transforms: Any


AS_IT_IS = (GraphRewriteSpec(("serve",), ()),)


class InputFnOps(NamedTuple):
    """Features of a served model, labels or None, and the placeholders that requests fill, by name."""

    features: Any
    labels: Any
    default_inputs: Any


def build_parsing_serving_input_fn(feature_spec: Any, default_batch_size: Any = None) -> Callable[[], InputFnOps]:
    """A function that makes a placeholder for serialized examples, and the features in them."""

    def input_fn() -> InputFnOps:
        serialized = array_ops.placeholder(dtypes.string, [default_batch_size], name="input_example_tensor")
        return InputFnOps(parse_example(serialized, feature_spec), None, {"examples": serialized})

    return input_fn


def build_default_serving_input_fn(features: Any, default_batch_size: Any = None) -> Callable[[], InputFnOps]:
    """A function that makes a placeholder like each feature, for batches of one size or of any."""

    def input_fn() -> InputFnOps:
        made = {
            name: array_ops.placeholder(each.dtype, [default_batch_size, *[*each.static_shape][1:]], name=each.op.name)
            for name, each in features.items()
        }
        return InputFnOps(made, None, made)

    return input_fn


def inputs_of(found: Any) -> InputFnOps:
    """What a serving_input_fn has returned.

    Raises:
        ValueError: there are no features.
    """
    inputs = found if isinstance(found, InputFnOps) else InputFnOps(found[0], found[1], None)
    if not inputs.features:
        raise ValueError("serving_input_fn returns no features")
    for key in inputs.features if isinstance(inputs.features, dict) else ():
        context.get_default_graph().add_to_collection(_FEATURES, key)
    return inputs


def _heads(ops: ModelFnOps, chosen: Any) -> tuple[dict[Any, Any], Any]:
    """The outputs of each head, and the head that is served where none is asked for."""
    heads = ops.output_alternatives
    if not heads:
        if chosen:
            raise ValueError(f"the model has no heads; leave default_output_alternative_key ('{chosen}') out")
        outputs = ops.predictions if isinstance(ops.predictions, dict) else {PredictionKey.GENERIC: ops.predictions}
        return {_OUTPUTS: (ProblemType.UNSPECIFIED, outputs)}, _OUTPUTS
    if chosen:
        if chosen not in heads:
            raise ValueError(f"the model has no head '{chosen}'; it has: {', '.join(map(str, heads))}")
        return heads, chosen
    if len(heads) > 1:
        raise ValueError(f"give default_output_alternative_key, one of: {', '.join(map(str, heads))}")
    return heads, next(iter(heads))


def write(
    ops: ModelFnOps, inputs: InputFnOps, base: Any, checkpoint: str, chosen: Any, assets_extra: Any, as_text: Any,
    graphs: Any, strip: Any,
) -> bytes:  # fmt: skip
    """Write a model of the default graph with the values of a checkpoint; returns the new folder."""
    heads, default = _heads(ops, chosen)
    if not inputs.default_inputs:
        raise ValueError("serving_input_fn gives no placeholders for requests; return InputFnOps")
    if not graphs or graphs[0].transforms or len(graphs) > 1:
        raise ValueError("graph_rewrite_specs must be one graph without transforms; `graphmill optimize` rewrites it")
    defs = {
        f"{_INPUTS}:{key or 'None'}": signature_of(inputs.default_inputs, outputs, problem)
        for key, (problem, outputs) in heads.items()
    }
    problem, outputs = heads[default]
    defs[DEFAULT_KEY] = signature_of(inputs.default_inputs, outputs, problem)
    shared = internal_tools.initialize_resources(internal_tools.shared_resources())
    start = group([variables.local_variables_initializer(), shared, variables.tables_initializer()])
    target = timestamped(os.fsdecode(base))
    parent, name = os.path.split(target)
    scratch = os.path.join(parent, f"temp-{name}")
    builder = SavedModelBuilder(scratch)
    with Session() as session:
        saver = getattr(ops.scaffold, "saver", None) or savers.Saver(sharded=True)
        saver.restore(session, checkpoint)
        builder.add_meta_graph_and_variables(
            session, list(graphs[0].tags), signature_def_map=defs, main_op=start, strip_default_attrs=strip,
            assets_collection=context.get_default_graph().get_collection(GraphKeys.ASSET_FILEPATHS),
        )  # fmt: skip
    builder.save(as_text)
    copy_extra(scratch, assets_extra)
    os.rename(scratch, target)
    return target.encode()


class _Strategy(NamedTuple):
    name: Any
    export_fn: Any
    strip_default_attrs: Any


class ExportStrategy(_Strategy):
    """How and under which name a model is exported after an evaluation.

    Args:
        export_fn: of an estimator, a folder, and of any of checkpoint_path, eval_result and strip_default_attrs.
    """

    def __new__(cls, name: Any, export_fn: Any, strip_default_attrs: Any = None) -> ExportStrategy:
        return super().__new__(cls, name, export_fn, strip_default_attrs)

    def export(self, estimator: Any, export_path: Any, checkpoint_path: Any = None, eval_result: Any = None) -> Any:
        """Export; returns the new folder.

        Raises:
            ValueError: the function takes the result of an evaluation, and no checkpoint.
        """
        takes = arguments_of(self.export_fn)
        if "eval_result" in takes and "checkpoint_path" not in takes:
            raise ValueError("an export_fn that takes eval_result takes checkpoint_path as well")
        offered = {
            "checkpoint_path": checkpoint_path, "eval_result": eval_result,
            "strip_default_attrs": self.strip_default_attrs,
        }  # fmt: skip
        return self.export_fn(estimator, export_path, **{key: each for key, each in offered.items() if key in takes})


def garbage_collect_exports(export_dir_base: Any, exports_to_keep: Any) -> None:
    """Remove all exports but the latest ones; None keeps all."""
    base = os.fsdecode(export_dir_base)
    if exports_to_keep is None or not os.path.isdir(base):
        return
    found = sorted((name for name in os.listdir(base) if len(name) == 10 and name.isdigit()), key=int)
    for name in found[: max(0, len(found) - exports_to_keep)]:
        shutil.rmtree(os.path.join(base, name))


def make_export_strategy(
    serving_input_fn: Any, default_output_alternative_key: Any = None, assets_extra: Any = None, as_text: Any = False,
    exports_to_keep: Any = 5, strip_default_attrs: Any = None,
) -> ExportStrategy:  # fmt: skip
    """A strategy that writes a SavedModel after each evaluation, and keeps the latest ones."""

    def export_fn(
        estimator: Any, export_dir_base: Any, checkpoint_path: Any = None, strip_default_attrs: Any = False
    ) -> Any:
        more: dict[str, Any] = {}
        if not isinstance(estimator, core.Estimator):
            more["default_output_alternative_key"] = default_output_alternative_key
        elif default_output_alternative_key is not None:
            raise ValueError("default_output_alternative_key is none of tf.estimator's; leave it out")
        made = estimator.export_savedmodel(
            export_dir_base, serving_input_fn, assets_extra=assets_extra, as_text=as_text,
            checkpoint_path=checkpoint_path, strip_default_attrs=bool(strip_default_attrs), **more,
        )  # fmt: skip
        garbage_collect_exports(export_dir_base, exports_to_keep)
        return made

    return ExportStrategy("Servo", export_fn, strip_default_attrs)


def make_parsing_export_strategy(
    feature_columns: Any, default_output_alternative_key: Any = None, assets_extra: Any = None, as_text: Any = False,
    exports_to_keep: Any = 5, target_core: Any = False, strip_default_attrs: Any = None,
) -> ExportStrategy:  # fmt: skip
    """`make_export_strategy` of models that take serialized examples with the features of columns."""
    from toolkit.client.scoped_columns.features import create_feature_spec_for_parsing
    from toolkit.tensorflow.estimators.receivers import build_parsing_serving_input_receiver_fn

    spec = create_feature_spec_for_parsing(feature_columns)
    make = build_parsing_serving_input_receiver_fn if target_core else build_parsing_serving_input_fn
    return make_export_strategy(
        make(spec), default_output_alternative_key, assets_extra, as_text, exports_to_keep, strip_default_attrs
    )


def make_best_model_export_strategy(
    serving_input_fn: Any, exports_to_keep: Any = 1, model_dir: Any = None, event_file_pattern: Any = None,
    compare_fn: Any = None, default_output_alternative_key: Any = None, strip_default_attrs: Any = None,
) -> ExportStrategy:  # fmt: skip
    """A strategy that exports a model whenever an evaluation is better than all before: by its loss, or `compare_fn`.

    Args:
        model_dir, event_file_pattern: where the results of earlier runs are.
        compare_fn: of the best result so far and a new one; whether the new one is better.
    """
    from toolkit.tensorflow.families.platform.services import Glob
    from toolkit.tensorflow.families.train.training import summary_iterator

    inner = make_export_strategy(
        serving_input_fn, default_output_alternative_key, exports_to_keep=exports_to_keep,
        strip_default_attrs=strip_default_attrs,
    )  # fmt: skip
    is_better = compare_fn or (lambda best, new: best[MetricKey.LOSS] > new[MetricKey.LOSS])
    best: list[Any] = []
    if model_dir and event_file_pattern:
        for file in Glob(os.path.join(model_dir, event_file_pattern)):
            for event in summary_iterator(file):
                values = {each.tag: each.simple_value for each in event.summary.value if each.HasField("simple_value")}
                if values and (not best or is_better(best[0], values)):
                    best[:] = [values]

    def export_fn(estimator: Any, export_dir_base: Any, checkpoint_path: Any, eval_result: Any = None) -> Any:
        checkpoint = checkpoint_path or savers.latest_checkpoint(estimator.model_dir)
        if not checkpoint or eval_result is None or (best and not is_better(best[0], eval_result)):
            return ""
        best[:] = [eval_result]
        folder = os.path.join(os.fsdecode(export_dir_base), os.path.basename(checkpoint))
        return inner.export(estimator, folder, checkpoint, eval_result)

    return ExportStrategy("best_model", export_fn)

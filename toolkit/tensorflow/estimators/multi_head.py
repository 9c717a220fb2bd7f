# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Several heads over the parts of the logits: one model with several objectives."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.math import math_ops
from toolkit.client.metrics import means
from toolkit.client.summaries import summary
from toolkit.tensorflow.estimators import export_outputs as exports
from toolkit.tensorflow.estimators.heads import Head
from toolkit.tensorflow.estimators.run_config import ModeKeys
from toolkit.tensorflow.estimators.spec import EstimatorSpec


class MultiHead(Head):
    """Heads with names; labels are a dict of what each takes, logits too, or are split among them in order.

    Args:
        heads: each with a name.
        head_weights: what the loss of each counts; 1 by default.

    Raises:
        ValueError: there is no head, one without a name, or not a weight for each.
    """

    def __init__(self, heads: Any, head_weights: Any = None):
        self._heads: tuple[Any, ...] = tuple(heads or ())
        if not self._heads:
            raise ValueError("heads: a MultiHead needs at least one")
        if head_weights and len(head_weights) != len(self._heads):
            raise ValueError(f"head_weights: expected {len(self._heads)}, one for each head; got {len(head_weights)}")
        nameless = [each for each in self._heads if not each.name]
        if nameless:
            raise ValueError(f"heads: each needs a name, for its labels and predictions; {nameless[0]!r} has none")
        self._head_weights = tuple(head_weights or ())

    @property
    def name(self) -> str:
        return "_".join(each.name for each in self._heads)

    @property
    def logits_dimension(self) -> int:
        return sum(each.logits_dimension for each in self._heads)

    @property
    def loss_reduction(self) -> str:
        found = {each.loss_reduction for each in self._heads}
        if len(found) > 1:
            raise ValueError(f"the heads reduce losses in different ways: {', '.join(sorted(found))}")
        return found.pop()

    def predictions(self, logits: Any, keys: Any = None) -> dict[Any, Any]:
        """Of all heads, by the name of the head and that of the prediction."""
        parts = self._parts(logits)
        with name_scope("merge_pred"):
            return {
                (head.name, key): value
                for head in self._heads
                for key, value in head.predictions(parts[head.name]).items()
            }

    def loss(
        self, labels: Any, logits: Any, features: Any = None, mode: Any = None, regularization_losses: Any = None
    ) -> Any:
        """The heads' losses by their weights, regularization included."""
        parts = self._parts(logits)
        self._check_labels(labels)
        found = [head.loss(labels[head.name], parts[head.name], features, mode) for head in self._heads]
        return self._merged(found, regularization_losses)

    def _merged(self, found: list[Any], regularization_losses: Any) -> Any:
        with name_scope(None, "merge_losses", [*found, *self._head_weights]):
            if self._head_weights:
                found = [math_ops.multiply(loss, by) for loss, by in zip(found, self._head_weights, strict=True)]
            merged = math_ops.add_n(found)
            return merged + math_ops.add_n(regularization_losses) if regularization_losses else merged

    def update_metrics(
        self, eval_metrics: Any, features: Any, logits: Any, labels: Any, regularization_losses: Any = None
    ) -> Any:
        """Add each head's metrics, and its loss, to a dict; returns it."""
        parts = self._parts(logits)
        self._check_labels(labels)
        if regularization_losses:
            loss = math_ops.add_n(regularization_losses)
            eval_metrics["regularization_loss"] = means.mean(loss, name="regularization_loss")
        for head in self._heads:
            own, given = parts[head.name], labels[head.name]
            key = f"loss/{head.name}"
            eval_metrics[key] = means.mean(head.loss(given, own, features, ModeKeys.EVAL), name=key)
            head.update_metrics(eval_metrics, features, own, given)
        return eval_metrics

    def create_estimator_spec(
        self, features: Any, mode: Any, logits: Any, labels: Any = None, optimizer: Any = None,
        trainable_variables: Any = None, train_op_fn: Any = None, update_ops: Any = None,
        regularization_losses: Any = None,
    ) -> EstimatorSpec:  # fmt: skip
        with name_scope(self.name, "multi_head"):
            parts = self._parts(logits)
            if mode != ModeKeys.PREDICT:
                self._check_labels(labels)
            specs = [
                head.create_estimator_spec(
                    features, mode, parts[head.name], labels[head.name] if labels else None,
                    train_op_fn=lambda loss: ops.no_op(),
                )
                for head in self._heads
            ]  # fmt: skip
            found = {
                (head.name, key): value
                for head, spec in zip(self._heads, specs, strict=True)
                for key, value in spec.predictions.items()
            }
            if mode == ModeKeys.PREDICT:
                return EstimatorSpec(mode, predictions=found, export_outputs=self._exports(specs))
            loss = self._merged([spec.loss for spec in specs], regularization_losses)
            metrics = {key: value for spec in specs for key, value in (spec.eval_metric_ops or {}).items()}
            if mode == ModeKeys.EVAL:
                for head, spec in zip(self._heads, specs, strict=True):
                    metrics[f"loss/{head.name}"] = means.mean(spec.loss, name=f"loss/{head.name}")
                if regularization_losses:
                    more = math_ops.add_n(regularization_losses)
                    metrics["regularization_loss"] = means.mean(more, name="regularization_loss")
                return EstimatorSpec(mode, predictions=found, loss=loss, eval_metric_ops=metrics)
            train_op = self._train_op(loss, optimizer, trainable_variables, train_op_fn, update_ops)
        with name_scope(""):
            summary.scalar("loss", loss)
        return EstimatorSpec(mode, predictions=found, loss=loss, train_op=train_op, eval_metric_ops=metrics)

    def _exports(self, specs: list[Any]) -> dict[str, Any]:
        """What each head exports under its name; the first one's is the default; all predictions in one."""
        first = specs[0].export_outputs
        outputs: dict[str, Any] = {exports.DEFAULT_KEY: first.get(exports.DEFAULT_KEY) or next(iter(first.values()))}
        predicted: dict[str, Any] = {}
        for head, spec in zip(self._heads, specs, strict=True):
            for key, value in spec.export_outputs.items():
                outputs[head.name if key == exports.DEFAULT_KEY else f"{head.name}/{key}"] = value
                if key == "predict" and isinstance(value, exports.PredictOutput):
                    predicted.update({f"{head.name}/{name}": tensor for name, tensor in value.outputs.items()})
        outputs["predict"] = exports.PredictOutput(predicted)
        return outputs

    def _parts(self, logits: Any) -> dict[str, Any]:
        """Each head's logits.

        Raises:
            ValueError: a head has none, or there are not as many as the heads take together.
        """
        if isinstance(logits, dict):
            lacking = [head.name for head in self._heads if head.name not in logits]
            if lacking:
                raise ValueError(f"logits: there are none for the heads {', '.join(lacking)}")
            return logits
        with name_scope(None, "split_logits", [logits]):
            logits = convert_to_tensor(logits)
            last = logits.static_shape[-1] if logits.static_shape.rank else None
            if last is not None and last != self.logits_dimension:
                raise ValueError(
                    f"logits: expected {self.logits_dimension} numbers for each example, for all heads; got {last}"
                )
            batch = array_ops.shape(logits)[:-1]
            start, found = 0, {}
            for head in self._heads:
                begin = array_ops.concat([array_ops.zeros_like(batch), [start]], 0)
                size = array_ops.concat([-1 * array_ops.ones_like(batch), [head.logits_dimension]], 0)
                found[head.name] = array_ops.slice(logits, begin, size)
                start += head.logits_dimension
            return found

    def _check_labels(self, labels: Any) -> None:
        if not isinstance(labels, dict):
            raise ValueError(f"labels: expected a dict by the names of the heads, got {labels!r}")
        lacking = [head.name for head in self._heads if head.name not in labels]
        if lacking:
            raise ValueError(f"labels: there are none for the heads {', '.join(lacking)}")

    # -- what a head of one objective computes; here each head does ----------------------------------------------

    def _outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def _processed(self, labels: Any, logits: Any) -> Any:
        raise NotImplementedError

    def _unreduced(self, labels: Any, logits: Any, features: Any) -> Any:
        raise NotImplementedError

    def _metrics(self, labels: Any, predictions: dict[str, Any], weights: Any, unreduced: Any) -> dict[str, Any]:
        raise NotImplementedError

# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.learn's functions that make heads, and heads that are made of others."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.grouping import group
from toolkit.client.construction.scopes import name_scope
from toolkit.client.math import math_ops
from toolkit.client.mode_keys import ModeKeys
from toolkit.client.summaries import summary
from toolkit.client.variables.store import variable_scope
from toolkit.tensorflow.learn import class_heads, head_losses
from toolkit.tensorflow.learn.heads import LearnHead, LearnRegressionHead, check_trains
from toolkit.tensorflow.learn.keys import MetricKey
from toolkit.tensorflow.learn.model_fn_ops import ModelFnOps


def regression_head(
    label_name: Any = None, weight_column_name: Any = None, label_dimension: Any = 1,
    enable_centered_bias: Any = False, head_name: Any = None, link_fn: Any = None,
) -> LearnHead:  # fmt: skip
    """Numbers, by the squared error of the logits."""
    return LearnRegressionHead(
        head_losses.squared, link_fn or array_ops.identity, label_dimension, label_name, weight_column_name,
        enable_centered_bias, head_name,
    )  # fmt: skip


def poisson_regression_head(
    label_name: Any = None, weight_column_name: Any = None, label_dimension: Any = 1,
    enable_centered_bias: Any = False, head_name: Any = None,
) -> LearnHead:  # fmt: skip
    """Counts, by the Poisson loss; the logits are their logarithms."""
    return LearnRegressionHead(
        head_losses.poisson, math_ops.exp, label_dimension, label_name, weight_column_name, enable_centered_bias,
        head_name,
    )  # fmt: skip


def multi_class_head(
    n_classes: Any, label_name: Any = None, weight_column_name: Any = None, enable_centered_bias: Any = False,
    head_name: Any = None, thresholds: Any = None, metric_class_ids: Any = None, loss_fn: Any = None,
    label_keys: Any = None,
) -> LearnHead:  # fmt: skip
    """One of several classes; of two, from one logit.

    Args:
        metric_class_ids: classes, of more than two, that have metrics of their own.
        loss_fn: of labels, logits and weights.
        label_keys: the words for more than two classes, where labels are words.

    Raises:
        ValueError: fewer than two classes, or what two classes do not have.
    """
    _check_classes(n_classes)
    loss = head_losses.of_program(loss_fn)
    if n_classes > 2:
        return class_heads.LearnMultiClassHead(
            n_classes, label_name, weight_column_name, enable_centered_bias, head_name, metric_class_ids, loss,
            label_keys,
        )  # fmt: skip
    for name, given in (("metric_class_ids", metric_class_ids), ("label_keys", label_keys)):
        if given:
            raise ValueError(f"{name} are for more than two classes; leave them out, and give labels of 0 and 1")
    return class_heads.BinaryLogisticHead(
        label_name, weight_column_name, enable_centered_bias, head_name, thresholds, loss
    )


def binary_svm_head(
    label_name: Any = None, weight_column_name: Any = None, enable_centered_bias: Any = False, head_name: Any = None,
    thresholds: Any = None,
) -> LearnHead:  # fmt: skip
    """Two classes, by the hinge loss of one logit."""
    del thresholds  # 1.15 has no metrics of it
    return class_heads.BinarySvmHead(label_name, weight_column_name, enable_centered_bias, head_name)


def multi_label_head(
    n_classes: Any, label_name: Any = None, weight_column_name: Any = None, enable_centered_bias: Any = False,
    head_name: Any = None, thresholds: Any = None, metric_class_ids: Any = None, loss_fn: Any = None,
) -> LearnHead:  # fmt: skip
    """Any of several classes; labels are [batch, n_classes] of 0 and 1, or sparse numbers of classes.

    Raises:
        ValueError: fewer than two classes.
    """
    del thresholds  # 1.15 has no metrics of it
    _check_classes(n_classes)
    return class_heads.LearnMultiLabelHead(
        n_classes, label_name, weight_column_name, enable_centered_bias, head_name, metric_class_ids,
        head_losses.of_program(loss_fn),
    )  # fmt: skip


def _check_classes(count: Any) -> None:
    if count is None or count < 2:
        raise ValueError(f"n_classes must be above 1; got {count}")


def loss_only_head(loss_fn: Any, head_name: Any = None) -> LearnHead:
    """A head without logits, whose loss is what a function without arguments returns."""
    return LossOnlyHead(loss_fn, head_name)


def multi_head(heads: Any, loss_weights: Any = None) -> LearnHead:
    """Several heads with names, whose losses are added.

    Args:
        loss_weights: how much each loss counts.

    Raises:
        ValueError: there are as many weights as heads, or not; a head has no name.
    """
    return SeveralHeads(heads, loss_weights)


def no_op_train_fn(loss: Any) -> Any:
    """An operation that trains nothing."""
    del loss
    return ops.no_op()


class LossOnlyHead(LearnHead):
    """A loss that asks for no logits, such as a regularizer."""

    def __init__(self, loss_fn: Any, head_name: Any):
        self._loss_fn, self.head_name = loss_fn, head_name or "loss_only_head"

    @property
    def logits_dimension(self) -> int:
        return 0

    def create_model_fn_ops(
        self, features: Any, mode: Any, labels: Any = None, train_op_fn: Any = None, logits: Any = None,
        logits_input: Any = None, scope: Any = None,
    ) -> ModelFnOps:  # fmt: skip
        ModeKeys.validate(mode)
        loss = train_op = None
        if mode != ModeKeys.INFER:
            with variable_scope(scope, self.head_name):
                loss = self._loss_fn()
                if isinstance(loss, list):
                    loss = math_ops.add_n(loss)
                with name_scope(""):
                    summary.scalar(f"{MetricKey.LOSS}/{self.head_name}", array_ops.identity(loss))
                if mode == ModeKeys.TRAIN:
                    check_trains(train_op_fn)
                    with name_scope(None, "train_op", (loss,)):
                        train_op = train_op_fn(loss)
        return ModelFnOps(mode=mode, loss=loss, train_op=train_op, predictions={}, eval_metric_ops={})


class SeveralHeads(LearnHead):
    """Heads beside each other: each has its part of the logits."""

    def __init__(self, heads: Any, loss_weights: Any):
        self._heads = list(heads)
        if loss_weights and len(loss_weights) != len(self._heads):
            raise ValueError(f"loss_weights has {len(loss_weights)} numbers for {len(self._heads)} heads")
        if any(not head.head_name for head in self._heads):
            raise ValueError("a head of a multi_head must have a name; give head_name")
        self._weights = loss_weights

    @property
    def logits_dimension(self) -> int:
        return sum(head.logits_dimension for head in self._heads)

    def create_model_fn_ops(
        self, features: Any, mode: Any, labels: Any = None, train_op_fn: Any = None, logits: Any = None,
        logits_input: Any = None, scope: Any = None,
    ) -> ModelFnOps:  # fmt: skip
        ModeKeys.validate(mode)
        made: list[ModelFnOps] = []
        for head, own in zip(self._heads, self._logits(logits), strict=True):
            given = {"logits_input": logits_input} if logits is None else {"logits": own}
            made.append(head.create_model_fn_ops(features, mode, labels, no_op_train_fn, scope=scope, **given))
        asked = [(head, parts) for head, parts in zip(self._heads, made, strict=True) if head.logits_dimension]
        if mode == ModeKeys.INFER:
            found = {(head.head_name, key): value for head, parts in asked for key, value in parts.predictions.items()}
            served = {head.head_name: parts.output_alternatives[head.head_name] for head, parts in asked}
            return ModelFnOps(mode, found, output_alternatives=served)
        metrics = {key: value for each in made for key, value in each.eval_metric_ops.items()}
        if mode == ModeKeys.TRAIN:
            check_trains(train_op_fn)
            loss = self._loss(made)
            train_op = group([train_op_fn(loss), *(each.train_op for each in made)])
            return ModelFnOps(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)
        found = {(head.head_name, key): value for head, parts in asked for key, value in parts.predictions.items()}
        return ModelFnOps(mode, found, self._loss(made), eval_metric_ops=metrics)

    def _logits(self, logits: Any) -> list[Any]:
        """What each head gets of the logits: a part of the tensor, or those of its name."""
        if logits is None:
            return [None] * len(self._heads)
        if isinstance(logits, dict):
            lacking = [each.head_name for each in self._heads if each.logits_dimension and each.head_name not in logits]
            if lacking:
                raise ValueError(f"there are no logits for the head '{lacking[0]}'; there are: {', '.join(logits)}")
            return [logits[each.head_name] if each.logits_dimension else None for each in self._heads]
        found: list[Any] = []
        begin = 0
        for head in self._heads:
            found.append(ops.slice(logits, [0, begin], [-1, head.logits_dimension]))
            begin += head.logits_dimension
        return found

    def _loss(self, made: list[ModelFnOps]) -> Any:
        losses = [each.loss for each in made]
        if self._weights:
            losses = [math_ops.multiply(loss, weight) for loss, weight in zip(losses, self._weights, strict=True)]
        return math_ops.add_n(losses)

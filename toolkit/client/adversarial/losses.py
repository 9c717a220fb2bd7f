# What models are made of may be of any type, so what it is is for tests to say, not for types.
# pyright: basic
"""Losses of generators and discriminators, of the tensors that they take (tf.contrib.gan.losses.wargs).

What they share:

    discriminator_real_outputs, discriminator_gen_outputs: logits, or scores, of real and of generated data.
    weights, real_weights, generated_weights, scope, loss_collection, reduction: as `losses.weighted` says.
    add_summaries: write the parts as scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.backprop import gradients
from toolkit.client.losses import weighted
from toolkit.client.losses.weighted import Reduction, compute_weighted_loss
from toolkit.client.math import clip_ops, math_ops
from toolkit.client.random import random_ops
from toolkit.client.summaries import summary
from toolkit.client.variables.model_variables import get_trainable_variables
from toolkit.client.variables.store import AUTO_REUSE, variable_scope
from toolkit.errors import ArgumentValueError
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys

_LOSSES = GraphKeys.LOSSES
_BY_NONZERO = Reduction.SUM_BY_NONZERO_WEIGHTS


def _summarized(add: bool, **values: Any) -> None:
    for name, value in values.items() if add else ():
        summary.scalar(name, value)


def _floats(*values: Any) -> list[Tensor]:
    return [math_ops.cast(value, dtypes.float32) for value in values]


def _kept(loss: Tensor, collection: Any) -> Tensor:
    if collection is not None:
        weighted.add_loss(loss, collection)
    return loss


def wasserstein_generator_loss(
    discriminator_gen_outputs: Any, weights: Any = 1.0, scope: Any = None, loss_collection: Any = _LOSSES,
    reduction: str = _BY_NONZERO, add_summaries: bool = False,
) -> Tensor:  # fmt: skip
    """Minus the scores (Arjovsky, Chintala and Bottou, "Wasserstein GAN", 2017)."""
    with name_scope(scope, "generator_wasserstein_loss", [discriminator_gen_outputs, weights]) as entered:
        (scores,) = _floats(discriminator_gen_outputs)
        loss = compute_weighted_loss(-scores, weights, entered, loss_collection, reduction)
        _summarized(add_summaries, generator_wass_loss=loss)
    return loss


def wasserstein_discriminator_loss(
    discriminator_real_outputs: Any, discriminator_gen_outputs: Any, real_weights: Any = 1.0,
    generated_weights: Any = 1.0, scope: Any = None, loss_collection: Any = _LOSSES, reduction: str = _BY_NONZERO,
    add_summaries: bool = False,
) -> Tensor:  # fmt: skip
    """Scores of generated data minus those of real data."""
    given = [discriminator_real_outputs, discriminator_gen_outputs, real_weights, generated_weights]
    with name_scope(scope, "discriminator_wasserstein_loss", given) as entered:
        real, generated = _floats(discriminator_real_outputs, discriminator_gen_outputs)
        on_generated = compute_weighted_loss(generated, generated_weights, entered, None, reduction)
        on_real = compute_weighted_loss(real, real_weights, entered, None, reduction)
        loss = _kept(on_generated - on_real, loss_collection)
        _summarized(
            add_summaries, discriminator_gen_wass_loss=on_generated, discriminator_real_wass_loss=on_real,
            discriminator_wass_loss=loss,
        )  # fmt: skip
    return loss


def acgan_discriminator_loss(
    discriminator_real_classification_logits: Any, discriminator_gen_classification_logits: Any, one_hot_labels: Any,
    label_smoothing: float = 0.0, real_weights: Any = 1.0, generated_weights: Any = 1.0, scope: Any = None,
    loss_collection: Any = _LOSSES, reduction: str = _BY_NONZERO, add_summaries: bool = False,
) -> Tensor:  # fmt: skip
    """The cross entropy of classes, of real and generated data."""
    real, generated = discriminator_real_classification_logits, discriminator_gen_classification_logits
    with name_scope(scope, "acgan_discriminator_loss", [real, generated, one_hot_labels]) as entered:
        on_generated = weighted.softmax_cross_entropy(
            one_hot_labels, generated, generated_weights, 0, entered, None, reduction
        )
        on_real = weighted.softmax_cross_entropy(
            one_hot_labels, real, real_weights, label_smoothing, entered, None, reduction
        )
        loss = _kept(on_generated + on_real, loss_collection)
        _summarized(
            add_summaries, discriminator_gen_ac_loss=on_generated, discriminator_real_ac_loss=on_real,
            discriminator_ac_loss=loss,
        )  # fmt: skip
    return loss


def acgan_generator_loss(
    discriminator_gen_classification_logits: Any, one_hot_labels: Any, weights: Any = 1.0, scope: Any = None,
    loss_collection: Any = _LOSSES, reduction: str = _BY_NONZERO, add_summaries: bool = False,
) -> Tensor:  # fmt: skip
    """The cross entropy of classes of generated data."""
    logits = discriminator_gen_classification_logits
    with name_scope(scope, "acgan_generator_loss", [logits, one_hot_labels]) as entered:
        loss = weighted.softmax_cross_entropy(one_hot_labels, logits, weights, 0, entered, loss_collection, reduction)
        _summarized(add_summaries, generator_ac_loss=loss)
    return loss


def wasserstein_gradient_penalty(
    real_data: Any, generated_data: Any, generator_inputs: Any, discriminator_fn: Callable[..., Any],
    discriminator_scope: Any, epsilon: float = 1e-10, target: float = 1.0, one_sided: bool = False,
    weights: Any = 1.0, scope: Any = None, loss_collection: Any = _LOSSES, reduction: str = _BY_NONZERO,
    add_summaries: bool = False,
) -> Tensor:  # fmt: skip
    """How far the discriminator's slopes between real and generated data are from `target`, squared.

    Source: Gulrajani et al., "Improved Training of Wasserstein GANs", 2017.

    Raises:
        ValueError: data has an unknown rank.
    """
    with name_scope(scope, "wasserstein_gradient_penalty", [real_data, generated_data]) as entered:
        real, generated = convert_to_tensor(real_data), convert_to_tensor(generated_data)
        for what, data in (("real_data", real), ("generated_data", generated)):
            if data.static_shape.rank is None:
                raise ArgumentValueError(f"{what}: the number of its dimensions has to be known")
        apart = generated - real
        rank = apart.static_shape.rank or 0
        size = apart.static_shape[0]
        batch: Any = array_ops.shape(apart)[0] if size is None else size
        share = random_ops.random_uniform(array_ops.stack([batch, *[1] * (rank - 1)]))
        between = real + share * apart
        with name_scope(None), variable_scope(discriminator_scope, "gpenalty_dscope", reuse=AUTO_REUSE):
            scores = discriminator_fn(between, generator_inputs)
        scores = scores[0] if isinstance(scores, tuple) else scores
        slopes: Any = gradients(scores, between)[0]
        squares = math_ops.reduce_sum(math_ops.square(slopes), list(range(1, rank)))
        penalties = math_ops.sqrt(squares + epsilon) / target - 1.0
        if one_sided:
            penalties = math_ops.maximum(0.0, penalties)
        penalty = compute_weighted_loss(math_ops.square(penalties), weights, entered, loss_collection, reduction)
        _summarized(add_summaries, gradient_penalty_loss=penalty)
    return penalty


def minimax_discriminator_loss(
    discriminator_real_outputs: Any, discriminator_gen_outputs: Any, label_smoothing: float = 0.25,
    real_weights: Any = 1.0, generated_weights: Any = 1.0, scope: Any = None, loss_collection: Any = _LOSSES,
    reduction: str = _BY_NONZERO, add_summaries: bool = False,
) -> Tensor:  # fmt: skip
    """The cross entropy of real and generated (Goodfellow et al., 2014, equation 1)."""
    real, generated = discriminator_real_outputs, discriminator_gen_outputs
    given = [real, generated, real_weights, generated_weights, label_smoothing]
    with name_scope(scope, "discriminator_minimax_loss", given) as entered:
        on_real = weighted.sigmoid_cross_entropy(
            array_ops.ones_like(real), real, real_weights, label_smoothing, entered, None, reduction
        )
        on_generated = weighted.sigmoid_cross_entropy(
            array_ops.zeros_like(generated), generated, generated_weights, 0, entered, None, reduction
        )
        loss = _kept(on_real + on_generated, loss_collection)
        _summarized(
            add_summaries, discriminator_gen_minimax_loss=on_generated, discriminator_real_minimax_loss=on_real,
            discriminator_minimax_loss=loss,
        )  # fmt: skip
    return loss


def minimax_generator_loss(
    discriminator_gen_outputs: Any, label_smoothing: float = 0.0, weights: Any = 1.0, scope: Any = None,
    loss_collection: Any = _LOSSES, reduction: str = _BY_NONZERO, add_summaries: bool = False,
) -> Tensor:  # fmt: skip
    """Minus the discriminator's loss."""
    with name_scope(scope, "generator_minimax_loss") as entered:
        loss = -minimax_discriminator_loss(
            array_ops.ones_like(discriminator_gen_outputs), discriminator_gen_outputs, label_smoothing, weights,
            weights, entered, loss_collection, reduction,
        )  # fmt: skip
    _summarized(add_summaries, generator_minimax_loss=loss)
    return loss


def modified_discriminator_loss(
    discriminator_real_outputs: Any, discriminator_gen_outputs: Any, label_smoothing: float = 0.25,
    real_weights: Any = 1.0, generated_weights: Any = 1.0, scope: Any = None, loss_collection: Any = _LOSSES,
    reduction: str = _BY_NONZERO, add_summaries: bool = False,
) -> Tensor:  # fmt: skip
    """`minimax_discriminator_loss` under another name."""
    return minimax_discriminator_loss(
        discriminator_real_outputs, discriminator_gen_outputs, label_smoothing, real_weights, generated_weights,
        scope or "discriminator_modified_loss", loss_collection, reduction, add_summaries,
    )  # fmt: skip


def modified_generator_loss(
    discriminator_gen_outputs: Any, label_smoothing: float = 0.0, weights: Any = 1.0, scope: Any = None,
    loss_collection: Any = _LOSSES, reduction: str = _BY_NONZERO, add_summaries: bool = False,
) -> Tensor:  # fmt: skip
    """The cross entropy of generated data taken for real: its gradient does not vanish."""
    outputs = discriminator_gen_outputs
    with name_scope(scope, "generator_modified_loss", [outputs]) as entered:
        loss = weighted.sigmoid_cross_entropy(
            array_ops.ones_like(outputs), outputs, weights, label_smoothing, entered, loss_collection, reduction
        )
        _summarized(add_summaries, generator_modified_loss=loss)
    return loss


def least_squares_generator_loss(
    discriminator_gen_outputs: Any, real_label: Any = 1, weights: Any = 1.0, scope: Any = None,
    loss_collection: Any = _LOSSES, reduction: str = _BY_NONZERO, add_summaries: bool = False,
) -> Tensor:  # fmt: skip
    """Half the squared distance to the label of real data (Mao et al., "Least Squares GANs", 2017)."""
    with name_scope(scope, "lsq_generator_loss", [discriminator_gen_outputs, real_label]) as entered:
        (scores,) = _floats(discriminator_gen_outputs)
        values = ops.squared_difference(scores, real_label) / 2.0
        loss = compute_weighted_loss(values, weights, entered, loss_collection, reduction)
    _summarized(add_summaries, generator_lsq_loss=loss)
    return loss


def least_squares_discriminator_loss(
    discriminator_real_outputs: Any, discriminator_gen_outputs: Any, real_label: Any = 1, fake_label: Any = 0,
    real_weights: Any = 1.0, generated_weights: Any = 1.0, scope: Any = None, loss_collection: Any = _LOSSES,
    reduction: str = _BY_NONZERO, add_summaries: bool = False,
) -> Tensor:  # fmt: skip
    """Half the squared distances to the labels."""
    with name_scope(scope, "lsq_discriminator_loss", [discriminator_gen_outputs, real_label]) as entered:
        real, generated = _floats(discriminator_real_outputs, discriminator_gen_outputs)
        of_real = ops.squared_difference(real, real_label) / 2.0
        of_generated = ops.squared_difference(generated, fake_label) / 2.0
        on_real = compute_weighted_loss(of_real, real_weights, entered, None, reduction)
        on_generated = compute_weighted_loss(of_generated, generated_weights, entered, None, reduction)
        loss = _kept(on_real + on_generated, loss_collection)
    _summarized(
        add_summaries, discriminator_gen_lsq_loss=on_generated, discriminator_real_lsq_loss=on_real,
        discriminator_lsq_loss=loss,
    )  # fmt: skip
    return loss


def mutual_information_penalty(
    structured_generator_inputs: Sequence[Any], predicted_distributions: Sequence[Any], weights: Any = 1.0,
    scope: Any = None, loss_collection: Any = _LOSSES, reduction: str = _BY_NONZERO, add_summaries: bool = False,
) -> Tensor:  # fmt: skip
    """Minus the log probability of the structured inputs (Chen et al., "InfoGAN", 2016).

    Raises:
        ValueError: something is no distribution; or there are not as many as inputs.
    """
    for one in predicted_distributions:
        if not callable(getattr(one, "log_prob", None)):
            raise ArgumentValueError(f"predicted_distributions: expected distributions, got {type(one).__name__}")
    if len(structured_generator_inputs) != len(predicted_distributions):
        raise ArgumentValueError(
            f"predicted_distributions: expected one for each of {len(structured_generator_inputs)} inputs, "
            f"got {len(predicted_distributions)}"
        )
    with name_scope(scope, "mutual_information_loss") as entered:
        pairs = zip(predicted_distributions, structured_generator_inputs, strict=True)
        logs = array_ops.stack([math_ops.reduce_mean(one.log_prob(noise)) for one, noise in pairs])
        loss = -1 * compute_weighted_loss(logs, weights, entered, loss_collection, reduction)
        _summarized(add_summaries, mutual_information_penalty=loss)
    return loss


def _norm(values: Sequence[Any]) -> Any:
    """The norm of several tensors together, without overflow."""
    present = [value for value in values if value is not None]
    if not present:
        return 0.0
    largest = math_ops.reduce_max(array_ops.stack([math_ops.reduce_max(math_ops.abs(x)) for x in present]))
    return largest * clip_ops.global_norm([x / largest for x in present])


def combine_adversarial_loss(
    main_loss: Any, adversarial_loss: Any, weight_factor: Any = None, gradient_ratio: Any = None,
    gradient_ratio_epsilon: float = 1e-6, variables: Any = None, scalar_summaries: bool = True,
    gradient_summaries: bool = True, scope: Any = None,
) -> Tensor:  # fmt: skip
    """A loss plus an adversarial one.

    Args:
        weight_factor: of the adversarial loss; or `gradient_ratio`: how much larger the main loss's gradient is.
        variables: that gradients are measured by; None: all that are trained.

    Raises:
        ValueError: neither or both are given.
    """
    if (weight_factor is None) == (gradient_ratio is None):
        raise ArgumentValueError("give one of weight_factor and gradient_ratio")
    variables = get_trainable_variables() if variables is None else variables
    with name_scope(scope, "adversarial_loss", [main_loss, adversarial_loss]):
        norms: list[Any] = []
        if gradient_summaries or gradient_ratio is not None:
            norms = [_norm(gradients(loss, variables)) for loss in (main_loss, adversarial_loss)]
        _summarized(scalar_summaries, main_loss=main_loss, adversarial_loss=adversarial_loss)
        if gradient_summaries:
            _summarized(True, main_loss_gradients=norms[0], adversarial_loss_gradients=norms[1])
        used = weight_factor if weight_factor is not None else gradient_ratio
        if static_value(convert_to_tensor(used)) == 0:
            return main_loss
        if weight_factor is not None:
            return main_loss + array_ops.stop_gradient(weight_factor) * adversarial_loss
        factor = norms[0] / (norms[1] + gradient_ratio_epsilon) / gradient_ratio
        _summarized(True, adversarial_coefficient=factor)
        return main_loss + array_ops.stop_gradient(factor) * adversarial_loss


def cycle_consistency_loss(
    data_x: Any, reconstructed_data_x: Any, data_y: Any, reconstructed_data_y: Any, scope: Any = None,
    add_summaries: bool = False,
) -> Tensor:  # fmt: skip
    """How far data is from what comes of going there and back."""
    given = [data_x, reconstructed_data_x, data_y, reconstructed_data_y]
    with name_scope(scope, "cycle_consistency_loss", given):
        x = weighted.absolute_difference(data_x, reconstructed_data_x)
        y = weighted.absolute_difference(data_y, reconstructed_data_y)
        loss = (x + y) / 2.0
        _summarized(
            add_summaries, cycle_consistency_loss_x2x=x, cycle_consistency_loss_y2y=y, cycle_consistency_loss=loss
        )
    return loss

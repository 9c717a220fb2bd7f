# What models are made of may be of any type, so what it is is for tests to say, not for types.
# pyright: basic
"""All losses of a model together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from toolkit.client.adversarial import losses, losses_of_models
from toolkit.client.adversarial.models import ACGANModel, CycleGANModel, GANModel, InfoGANModel
from toolkit.client.arrays import array_ops
from toolkit.client.checks import assertions
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.losses import weighted
from toolkit.client.math import math_ops
from toolkit.client.summaries import summary
from toolkit.client.variables.store import variable_scope
from toolkit.errors import ArgumentValueError


class GANLoss(NamedTuple):
    """What each of both learns by."""

    generator_loss: Any
    discriminator_loss: Any


class CycleGANLoss(NamedTuple):
    """The losses there and back."""

    loss_x2y: Any
    loss_y2x: Any


def _weight(value: Any, name: str) -> Any:
    """A weight that is not negative; None where there is nothing to add."""
    if isinstance(value, Tensor):
        with control_dependencies([assertions.assert_greater_equal(value, 0.0)]):
            return array_ops.identity(value)
    if value is not None and value < 0:
        raise ArgumentValueError(f"{name}: expected 0 or more, got {value}")
    return value or None


def _pooled(model: Any, pool: Callable[[Any], Any]) -> Any:
    """The model with generated data that was made some steps before."""
    given = [model.generator_inputs, model.generated_data]
    if isinstance(model, InfoGANModel):
        inputs, data, structured = pool((*given, model.structured_generator_inputs))
        function = model.discriminator_and_aux_fn
    else:
        inputs, data = pool(tuple(given))
        structured, function = None, model.discriminator_fn
    with variable_scope(model.discriminator_scope, reuse=True):
        outputs = function(data, inputs)
    changed = model._replace(generator_inputs=inputs, generated_data=data)
    match model:
        case GANModel():
            return changed._replace(discriminator_gen_outputs=outputs)
        case ACGANModel():
            return changed._replace(
                discriminator_gen_outputs=outputs[0], discriminator_gen_classification_logits=outputs[1]
            )
        case InfoGANModel():
            return changed._replace(
                discriminator_gen_outputs=outputs[0], predicted_distributions=outputs[1],
                structured_generator_inputs=structured,
            )  # fmt: skip
        case _:
            raise ArgumentValueError(f"tensor_pool_fn: a {type(model).__name__} takes none")


def gan_loss(
    model: Any, generator_loss_fn: Any = losses_of_models.wasserstein_generator_loss,
    discriminator_loss_fn: Any = losses_of_models.wasserstein_discriminator_loss, gradient_penalty_weight: Any = None,
    gradient_penalty_epsilon: float = 1e-10, gradient_penalty_target: float = 1.0,
    gradient_penalty_one_sided: bool = False, mutual_information_penalty_weight: Any = None,
    aux_cond_generator_weight: Any = None, aux_cond_discriminator_weight: Any = None, tensor_pool_fn: Any = None,
    add_summaries: bool = True,
) -> GANLoss:  # fmt: skip
    """The losses of a model, with what regularizes its variables.

    Args:
        generator_loss_fn, discriminator_loss_fn: of `losses_of_models`.
        gradient_penalty_weight: of Wasserstein's penalty, whose arguments follow.
        mutual_information_penalty_weight: for an InfoGANModel.
        aux_cond_generator_weight, aux_cond_discriminator_weight: of classes, for an ACGANModel.
        tensor_pool_fn: gives the discriminator older generated data, as `features.tensor_pool`.

    Raises:
        ValueError: a weight is negative, or for a model of another kind.
    """
    penalty = _weight(gradient_penalty_weight, "gradient_penalty_weight")
    information = _weight(mutual_information_penalty_weight, "mutual_information_penalty_weight")
    generator_classes = _weight(aux_cond_generator_weight, "aux_cond_generator_weight")
    discriminator_classes = _weight(aux_cond_discriminator_weight, "aux_cond_discriminator_weight")
    if information is not None and not isinstance(model, InfoGANModel):
        raise ArgumentValueError(
            f"mutual_information_penalty_weight is for an InfoGANModel, not a {type(model).__name__}"
        )
    if (generator_classes is not None or discriminator_classes is not None) and not isinstance(model, ACGANModel):
        raise ArgumentValueError(f"weights of classes are for an ACGANModel, not a {type(model).__name__}")
    pooled = model if tensor_pool_fn is None else _pooled(model, tensor_pool_fn)
    of_generator = generator_loss_fn(model, add_summaries=add_summaries)
    of_discriminator = discriminator_loss_fn(pooled, add_summaries=add_summaries)
    if penalty is not None:
        of_discriminator += penalty * losses_of_models.wasserstein_gradient_penalty(
            pooled, epsilon=gradient_penalty_epsilon, target=gradient_penalty_target,
            one_sided=gradient_penalty_one_sided, add_summaries=add_summaries,
        )  # fmt: skip
    if information is not None:
        told = losses_of_models.mutual_information_penalty(model, add_summaries=add_summaries)
        of_generator += information * told
        if tensor_pool_fn is not None:
            told = losses_of_models.mutual_information_penalty(pooled, add_summaries=add_summaries)
        of_discriminator += information * told
    if generator_classes is not None:
        classes = losses_of_models.acgan_generator_loss(model, add_summaries=add_summaries)
        of_generator += generator_classes * classes
    if discriminator_classes is not None:
        classes = losses_of_models.acgan_discriminator_loss(pooled, add_summaries=add_summaries)
        of_discriminator += discriminator_classes * classes
    regular = [
        weighted.get_regularization_loss(scope.name) if scope else 0
        for scope in (model.generator_scope, model.discriminator_scope)
    ]
    return GANLoss(of_generator + regular[0], of_discriminator + regular[1])


def cyclegan_loss(
    model: Any, generator_loss_fn: Any = losses_of_models.least_squares_generator_loss,
    discriminator_loss_fn: Any = losses_of_models.least_squares_discriminator_loss,
    cycle_consistency_loss_fn: Any = losses_of_models.cycle_consistency_loss, cycle_consistency_loss_weight: Any = 10.0,
    **kwargs: Any,
) -> CycleGANLoss:  # fmt: skip
    """The losses of a CycleGANModel; further arguments are those of `gan_loss`.

    Raises:
        ValueError: the model is another one.
    """
    if not isinstance(model, CycleGANModel):
        raise ArgumentValueError(f"model: expected a CycleGANModel, got {type(model).__name__}")
    around = cycle_consistency_loss_fn(model, add_summaries=kwargs.get("add_summaries", True))
    weight = _weight(cycle_consistency_loss_weight, "cycle_consistency_loss_weight")
    around = (0.0 if weight is None else weight) * around
    found: list[GANLoss] = []
    for scope, part in (("cyclegan_loss_x2y", model.model_x2y), ("cyclegan_loss_y2x", model.model_y2x)):
        with name_scope(scope):
            loss = gan_loss(part, generator_loss_fn, discriminator_loss_fn, **kwargs)
            found.append(loss._replace(generator_loss=loss.generator_loss + around))
    return CycleGANLoss(*found)


_GENERATOR = losses_of_models.stargan_generator_loss_wrapper(losses.wasserstein_generator_loss)
_DISCRIMINATOR = losses_of_models.stargan_discriminator_loss_wrapper(losses.wasserstein_discriminator_loss)


def stargan_loss(
    model: Any, generator_loss_fn: Any = _GENERATOR, discriminator_loss_fn: Any = _DISCRIMINATOR,
    gradient_penalty_weight: Any = 10.0, gradient_penalty_epsilon: float = 1e-10, gradient_penalty_target: float = 1.0,
    gradient_penalty_one_sided: bool = False, reconstruction_loss_fn: Any = weighted.absolute_difference,
    reconstruction_loss_weight: Any = 10.0, classification_loss_fn: Any = weighted.softmax_cross_entropy,
    classification_loss_weight: Any = 1.0, classification_one_hot: bool = True, add_summaries: bool = True,
) -> GANLoss:  # fmt: skip
    """The losses of a StarGANModel: of scores, slopes, going there and back, and domains."""

    def of_domains(labels: Tensor, logits: Any, scope: str) -> Tensor:
        with name_scope(scope, None, [labels, logits]):
            loss = classification_loss_fn(onehot_labels=labels, logits=logits)
            if not classification_one_hot:
                loss = math_ops.reduce_sum(loss, 1)
            loss = math_ops.reduce_mean(loss)
            if add_summaries:
                summary.scalar(scope, loss)
            return loss

    of_generator = generator_loss_fn(model, add_summaries=add_summaries)
    of_discriminator = discriminator_loss_fn(model, add_summaries=add_summaries)
    penalty = _weight(gradient_penalty_weight, "gradient_penalty_weight")
    if penalty is not None:
        function = losses_of_models.stargan_gradient_penalty_wrapper(losses.wasserstein_gradient_penalty)
        of_discriminator += penalty * function(
            model, epsilon=gradient_penalty_epsilon, target=gradient_penalty_target,
            one_sided=gradient_penalty_one_sided, add_summaries=add_summaries,
        )  # fmt: skip
    around = reconstruction_loss_fn(model.input_data, model.reconstructed_data)
    if add_summaries:
        summary.scalar("reconstruction_loss", around)
    of_generator += around * reconstruction_loss_weight + classification_loss_weight * of_domains(
        model.generated_data_domain_target, model.discriminator_generated_data_domain_predication,
        "generator_classification_loss",
    )  # fmt: skip
    of_discriminator += classification_loss_weight * of_domains(
        model.input_data_domain_label, model.discriminator_input_data_domain_predication,
        "discriminator_classification_loss",
    )  # fmt: skip
    return GANLoss(of_generator, of_discriminator)

# What models are made of may be of any type, so what it is is for tests to say, not for types.
# pyright: basic
"""Losses of generators and discriminators, of a model (tf.contrib.gan.losses)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from toolkit.client.adversarial import losses
from toolkit.client.adversarial.models import CycleGANModel
from toolkit.client.construction.tensor import Tensor
from toolkit.errors import ArgumentValueError

Loss = Callable[..., Tensor]


def _of_model(loss: Loss) -> Loss:
    """A loss that takes from the model what the model has."""
    parameters = inspect.signature(loss).parameters

    def of_model(gan_model: Any, **kwargs: Any) -> Tensor:
        own = {name: getattr(gan_model, name) for name in gan_model._fields if name in parameters}
        twice = sorted(kwargs.keys() & set(gan_model._fields))
        if twice:
            raise ArgumentValueError(f"{loss.__name__}: the model has {', '.join(twice)} already")
        for name, parameter in parameters.items():
            if parameter.default is parameter.empty and name not in own and name not in kwargs:
                raise ArgumentValueError(f"{loss.__name__}: the model has no {name}; give it as an argument")
        return loss(**own, **kwargs)

    functools.update_wrapper(of_model, loss)
    del of_model.__wrapped__  # pyright: ignore[reportFunctionMemberAccess]  # it has other arguments
    return of_model


wasserstein_generator_loss = _of_model(losses.wasserstein_generator_loss)
wasserstein_discriminator_loss = _of_model(losses.wasserstein_discriminator_loss)
wasserstein_gradient_penalty = _of_model(losses.wasserstein_gradient_penalty)
acgan_discriminator_loss = _of_model(losses.acgan_discriminator_loss)
acgan_generator_loss = _of_model(losses.acgan_generator_loss)
minimax_discriminator_loss = _of_model(losses.minimax_discriminator_loss)
minimax_generator_loss = _of_model(losses.minimax_generator_loss)
modified_discriminator_loss = _of_model(losses.modified_discriminator_loss)
modified_generator_loss = _of_model(losses.modified_generator_loss)
least_squares_generator_loss = _of_model(losses.least_squares_generator_loss)
least_squares_discriminator_loss = _of_model(losses.least_squares_discriminator_loss)
mutual_information_penalty = _of_model(losses.mutual_information_penalty)


def combine_adversarial_loss(
    gan_loss: Any, gan_model: Any, non_adversarial_loss: Any, weight_factor: Any = None, gradient_ratio: Any = None,
    gradient_ratio_epsilon: float = 1e-6, scalar_summaries: bool = True, gradient_summaries: bool = True,
) -> Any:  # fmt: skip
    """A GANLoss whose generator has another loss besides; see `losses.combine_adversarial_loss`."""
    combined = losses.combine_adversarial_loss(
        non_adversarial_loss, gan_loss.generator_loss, weight_factor, gradient_ratio, gradient_ratio_epsilon,
        gan_model.generator_variables, scalar_summaries, gradient_summaries,
    )  # fmt: skip
    return gan_loss._replace(generator_loss=combined)


def cycle_consistency_loss(cyclegan_model: Any, scope: Any = None, add_summaries: bool = False) -> Tensor:
    """How far data is from what comes of going there and back.

    Raises:
        ValueError: it is no CycleGANModel.
    """
    if not isinstance(cyclegan_model, CycleGANModel):
        raise ArgumentValueError(f"expected a CycleGANModel, got {type(cyclegan_model).__name__}")
    return losses.cycle_consistency_loss(
        cyclegan_model.model_x2y.generator_inputs, cyclegan_model.reconstructed_x,
        cyclegan_model.model_y2x.generator_inputs, cyclegan_model.reconstructed_y, scope, add_summaries,
    )  # fmt: skip


def stargan_generator_loss_wrapper(loss_fn: Loss) -> Loss:
    """A generator's loss, of a StarGANModel."""

    def of_model(stargan_model: Any, **kwargs: Any) -> Tensor:
        return loss_fn(stargan_model.discriminator_generated_data_source_predication, **kwargs)

    return of_model


def stargan_discriminator_loss_wrapper(loss_fn: Loss) -> Loss:
    """A discriminator's loss, of a StarGANModel."""

    def of_model(stargan_model: Any, **kwargs: Any) -> Tensor:
        return loss_fn(
            stargan_model.discriminator_input_data_source_predication,
            stargan_model.discriminator_generated_data_source_predication, **kwargs,
        )  # fmt: skip

    return of_model


def stargan_gradient_penalty_wrapper(loss_fn: Loss) -> Loss:
    """A gradient penalty, of a StarGANModel."""

    def of_model(stargan_model: Any, **kwargs: Any) -> Tensor:
        return loss_fn(
            real_data=stargan_model.input_data, generated_data=stargan_model.generated_data,
            generator_inputs=stargan_model.input_data_domain_label.static_shape[-1],
            discriminator_fn=stargan_model.discriminator_fn, discriminator_scope=stargan_model.discriminator_scope,
            **kwargs,
        )  # fmt: skip

    return of_model

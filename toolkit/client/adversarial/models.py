# What models are made of may be of any type, so what it is is for tests to say, not for types.
# pyright: basic
"""A generator and a discriminator put together: what they give for real and for generated data."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.random import random_ops
from toolkit.client.variables.model_variables import get_trainable_variables
from toolkit.client.variables.store import variable_scope
from toolkit.errors import ArgumentTypeError, ArgumentValueError
from toolkit.graph import dtypes

_PARTS = (
    "generator_inputs", "generated_data", "generator_variables", "generator_scope", "generator_fn", "real_data",
    "discriminator_real_outputs", "discriminator_gen_outputs", "discriminator_variables", "discriminator_scope",
    "discriminator_fn",
)  # fmt: skip


class GANModel(namedtuple("GANModel", _PARTS)):
    """A model; its parts are what the functions were given and gave."""

    __slots__ = ()


class InfoGANModel(
    namedtuple(
        "InfoGANModel", (*_PARTS, "structured_generator_inputs", "predicted_distributions", "discriminator_and_aux_fn")
    )
):
    """A model whose discriminator tells what the structured inputs were, as distributions."""

    __slots__ = ()


class ACGANModel(
    namedtuple(
        "ACGANModel",
        (
            *_PARTS,
            "one_hot_labels",
            "discriminator_real_classification_logits",
            "discriminator_gen_classification_logits",
        ),
    )
):
    """A model whose discriminator tells classes as well."""

    __slots__ = ()


class CycleGANModel(namedtuple("CycleGANModel", ("model_x2y", "model_y2x", "reconstructed_x", "reconstructed_y"))):
    """Two models, there and back, and what comes of going around."""

    __slots__ = ()


_STAR = (
    "input_data", "input_data_domain_label", "generated_data", "generated_data_domain_target", "reconstructed_data",
    "discriminator_input_data_source_predication", "discriminator_generated_data_source_predication",
    "discriminator_input_data_domain_predication", "discriminator_generated_data_domain_predication",
    "generator_variables", "generator_scope", "generator_fn", "discriminator_variables", "discriminator_scope",
    "discriminator_fn",
)  # fmt: skip


class StarGANModel(namedtuple("StarGANModel", _STAR)):
    """One generator between many domains."""

    __slots__ = ()


def _tensors(given: Any) -> Any:
    """A value, a list or a dictionary of such, as tensors."""
    if isinstance(given, list | tuple):
        return [convert_to_tensor(each) for each in given]
    if isinstance(given, dict):
        return {key: convert_to_tensor(each) for key, each in given.items()}
    return convert_to_tensor(given)


def _check_shapes(generated: Any, real: Any) -> None:
    if not generated.static_shape.is_compatible_with(real.static_shape):
        raise ArgumentValueError(
            f"generated data has shape {generated.static_shape}, real data {real.static_shape}: make them the same"
        )


def gan_model(
    generator_fn: Callable[..., Any], discriminator_fn: Callable[..., Any], real_data: Any, generator_inputs: Any,
    generator_scope: Any = "Generator", discriminator_scope: Any = "Discriminator", check_shapes: bool = True,
) -> GANModel:  # fmt: skip
    """A model.

    Args:
        generator_fn: gives data of the inputs.
        discriminator_fn: gives logits, or scores, of data and the generator's inputs.
        real_data: tensors as the generator makes.
        generator_inputs: noise, and whatever else: a tensor, a list or a dictionary.
        check_shapes: real and generated data have the same.

    Raises:
        ValueError: shapes differ.
    """
    with variable_scope(generator_scope) as generating:
        inputs = _tensors(generator_inputs)
        generated = generator_fn(inputs)
    with variable_scope(discriminator_scope) as discriminating:
        of_generated = discriminator_fn(generated, inputs)
    with variable_scope(discriminating, reuse=True):
        real = _tensors(real_data)
        of_real = discriminator_fn(real, inputs)
    if check_shapes:
        _check_shapes(generated, real)
    return GANModel(
        inputs, generated, get_trainable_variables(generating), generating, generator_fn, real, of_real, of_generated,
        get_trainable_variables(discriminating), discriminating, discriminator_fn,
    )  # fmt: skip


def infogan_model(
    generator_fn: Callable[..., Any], discriminator_fn: Callable[..., Any], real_data: Any,
    unstructured_generator_inputs: Any, structured_generator_inputs: Any, generator_scope: Any = "Generator",
    discriminator_scope: Any = "Discriminator",
) -> InfoGANModel:  # fmt: skip
    """A model that learns what its structured inputs mean (Chen et al., "InfoGAN", 2016).

    Args:
        discriminator_fn: gives logits, and a list of distributions of the structured inputs.

    Raises:
        ValueError: shapes, or numbers of distributions, differ.
    """
    with variable_scope(generator_scope) as generating:
        structured = _tensors(structured_generator_inputs)
        inputs = _tensors(unstructured_generator_inputs) + structured
        generated = generator_fn(inputs)
    with variable_scope(discriminator_scope) as discriminating:
        of_generated, predicted = discriminator_fn(generated, inputs)
    if not isinstance(predicted, list | tuple) or len(predicted) != len(structured):
        raise ArgumentValueError(f"discriminator_fn: expected a distribution for each of {len(structured)} inputs")
    with variable_scope(discriminating, reuse=True):
        real = convert_to_tensor(real_data)
        of_real, _ = discriminator_fn(real, inputs)
    _check_shapes(generated, real)
    return InfoGANModel(
        inputs, generated, get_trainable_variables(generating), generating, generator_fn, real, of_real, of_generated,
        get_trainable_variables(discriminating), discriminating, lambda x, y: discriminator_fn(x, y)[0], structured,
        predicted, discriminator_fn,
    )  # fmt: skip


def _logits_and_classes(given: Any) -> tuple[Any, Any]:
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise ArgumentTypeError("discriminator_fn: expected logits of real or generated, and logits of classes")
    return given[0], given[1]


def acgan_model(
    generator_fn: Callable[..., Any], discriminator_fn: Callable[..., Any], real_data: Any, generator_inputs: Any,
    one_hot_labels: Any, generator_scope: Any = "Generator", discriminator_scope: Any = "Discriminator",
    check_shapes: bool = True,
) -> ACGANModel:  # fmt: skip
    """A model that classifies (Odena, Olah and Shlens, "Conditional Image Synthesis With Auxiliary Classifiers", 2017).

    Args:
        discriminator_fn: gives two logits: real or generated, and of classes.

    Raises:
        ValueError: shapes differ.
        TypeError: the discriminator does not give two.
    """
    with variable_scope(generator_scope) as generating:
        inputs = _tensors(generator_inputs)
        generated = generator_fn(inputs)
    with variable_scope(discriminator_scope) as discriminating, name_scope(f"{discriminating.name}/generated/"):
        of_generated, generated_classes = _logits_and_classes(discriminator_fn(generated, inputs))
    with variable_scope(discriminating, reuse=True), name_scope(f"{discriminating.name}/real/"):
        real = convert_to_tensor(real_data)
        of_real, real_classes = _logits_and_classes(discriminator_fn(real, inputs))
    if check_shapes:
        _check_shapes(generated, real)
    return ACGANModel(
        inputs, generated, get_trainable_variables(generating), generating, generator_fn, real, of_real, of_generated,
        get_trainable_variables(discriminating), discriminating, discriminator_fn, one_hot_labels, real_classes,
        generated_classes,
    )  # fmt: skip


def cyclegan_model(
    generator_fn: Callable[..., Any], discriminator_fn: Callable[..., Any], data_x: Any, data_y: Any,
    generator_scope: Any = "Generator", discriminator_scope: Any = "Discriminator", model_x2y_scope: Any = "ModelX2Y",
    model_y2x_scope: Any = "ModelY2X", check_shapes: bool = True,
) -> CycleGANModel:  # fmt: skip
    """Models from x to y and back (Zhu et al., "Unpaired Image-to-Image Translation", 2017)."""

    def one_way(inputs: Any, outputs: Any) -> GANModel:
        return gan_model(
            generator_fn, discriminator_fn, outputs, inputs, generator_scope, discriminator_scope, check_shapes
        )

    with variable_scope(model_x2y_scope):
        there = one_way(data_x, data_y)
    with variable_scope(model_y2x_scope):
        back = one_way(data_y, data_x)
    with variable_scope(back.generator_scope, reuse=True):
        x = back.generator_fn(there.generated_data)
    with variable_scope(there.generator_scope, reuse=True):
        y = there.generator_fn(back.generated_data)
    return CycleGANModel(there, back, x, y)


def stargan_model(
    generator_fn: Callable[..., Any], discriminator_fn: Callable[..., Any], input_data: Any,
    input_data_domain_label: Any, generator_scope: Any = "Generator", discriminator_scope: Any = "Discriminator",
) -> StarGANModel:  # fmt: skip
    """One generator between many domains (Choi et al., "StarGAN", 2018); each example goes to a domain that is drawn.

    Args:
        generator_fn: gives data of data and the domain it goes to, one-hot.
        discriminator_fn: of data and the number of domains, gives scores and logits of the domain.
        input_data_domain_label: [batch, domains], known sizes.
    """
    data, labels = (
        array_ops.concat(each, 0) if isinstance(each, list) else each
        for each in (_tensors(input_data), _tensors(input_data_domain_label))
    )
    shape = labels.static_shape
    if shape.rank != 2 or not shape.is_fully_defined:
        raise ArgumentValueError(f"input_data_domain_label: expected [batch, domains] of known sizes, got {shape}")
    batch, domains = shape.as_list()
    with variable_scope(generator_scope) as generating:
        drawn = random_ops.random_uniform([batch], 0, domains, dtypes.int32)
        target = array_ops.one_hot(drawn, domains)
        generated = generator_fn(data, target)
    with variable_scope(generating, reuse=True):
        reconstructed = generator_fn(generated, labels)
    with variable_scope(discriminator_scope) as discriminating:
        generated_source, generated_domain = discriminator_fn(generated, domains)
    with variable_scope(discriminating, reuse=True):
        source, domain = discriminator_fn(data, domains)
    return StarGANModel(
        data, labels, generated, target, reconstructed, source, generated_source, domain, generated_domain,
        get_trainable_variables(generating), generating, generator_fn, get_trainable_variables(discriminating),
        discriminating, discriminator_fn,
    )  # fmt: skip

# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.function: Python functions that are traced into functions of the graph."""

from __future__ import annotations

import functools
from typing import Any

from toolkit.client.functions.polymorphic import PolymorphicFunction
from toolkit.client.structures.type_specs import TypeSpec, spec_of


def function(
    func: Any = None, input_signature: Any = None, autograph: bool = True, jit_compile: Any = None,
    reduce_retracing: bool = False, experimental_implements: Any = None, experimental_autograph_options: Any = None,
    experimental_attributes: Any = None, experimental_relax_shapes: Any = None, experimental_compile: Any = None,
    experimental_follow_type_hints: Any = None,
) -> Any:  # fmt: skip
    """A function of the graph, traced for each kind of arguments; without `func` what makes one of it.

    Conditions and loops over tensors are written with tf.cond and tf.while_loop: Python's statements are run while
    tracing. What compiles the graph decides for itself, so `jit_compile` asks for nothing.
    """
    del autograph, jit_compile, experimental_implements, experimental_autograph_options, experimental_attributes
    del experimental_compile, experimental_follow_type_hints

    def decorated(inner: Any) -> PolymorphicFunction:
        made = PolymorphicFunction(inner, None, input_signature, reduce_retracing or bool(experimental_relax_shapes))
        functools.update_wrapper(made, inner, updated=())
        return made

    return decorated if func is None else decorated(func)


def type_spec_from_value(value: Any) -> TypeSpec:
    """What a tensor, or what stands for several, is like; of an array or a number the tensor that it becomes.

    Raises:
        TypeError: it is none of these.
    """
    return spec_of(value)

"""One step of the cells of cuDNN's recurrent networks, and its gradient.

The formulas are those of NVIDIA's cuDNN API reference, cudnnRNNMode_t. Gates stand side by side, in the order of
`toolkit.kernels.recurrent_params`; `by_input` and `by_state` are the products with both biases added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolkit.kernels.cpu.common import np
from toolkit.kernels.cpu.nn.rnn import sigmoid
from toolkit.kernels.types import Array


@dataclass(frozen=True, slots=True)
class CellStep:
    """What a step makes of one row for each example.

    Attributes:
        gates: what its gradient needs of them; no columns where the state says it.
        memory: None without.
        state: before a projection.
    """

    gates: Array
    memory: Array | None
    state: Array


@dataclass(frozen=True, slots=True)
class CellGradient:
    """The gradients of a step.

    Attributes:
        by_input, by_state: by the products.
        past: by the state before, beside the product with it; None where nothing comes that way.
        memory: by the memory before.
    """

    by_input: Array
    by_state: Array
    past: Array | None
    memory: Array | None


def _lstm(by_input: Array, by_state: Array, state: Array, memory: Array) -> CellStep:
    i, f, new, o = np.split(by_input + by_state, 4, axis=-1)
    i, f, new, o = sigmoid(i), sigmoid(f), np.tanh(new), sigmoid(o)
    kept = f * memory + i * new
    return CellStep(np.concatenate([i, f, new, o], axis=-1), kept, o * np.tanh(kept))


def lstm_state(gates: Array, memory: Array) -> Array:
    """What an LSTM's step projects, from what was saved of it."""
    return np.split(gates, 4, axis=-1)[3] * np.tanh(memory)


def _lstm_gradient(gates: Array, states: tuple[Array, Array], memories: tuple[Array, Array], grad: Array,
                   memory_grad: Array) -> CellGradient:  # fmt: skip
    i, f, new, o = np.split(gates, 4, axis=-1)
    bent = np.tanh(memories[1])
    inner = memory_grad + grad * o * (1 - bent * bent)
    parts = (
        inner * new * i * (1 - i), inner * memories[0] * f * (1 - f), inner * i * (1 - new * new),
        grad * bent * o * (1 - o),
    )  # fmt: skip
    found = np.concatenate(parts, axis=-1)
    return CellGradient(found, found, None, inner * f)


def _gru(by_input: Array, by_state: Array, state: Array, memory: Array | None) -> CellStep:
    (xr, xu, xn), (hr, hu, hn) = np.split(by_input, 3, axis=-1), np.split(by_state, 3, axis=-1)
    r, u = sigmoid(xr + hr), sigmoid(xu + hu)
    new = np.tanh(xn + r * hn)
    return CellStep(np.concatenate([r, u, new, hn], axis=-1), None, (1 - u) * new + u * state)


def _gru_gradient(gates: Array, states: tuple[Array, Array], memories: tuple[Array, Array] | None, grad: Array,
                  memory_grad: Array | None) -> CellGradient:  # fmt: skip
    r, u, new, hn = np.split(gates, 4, axis=-1)
    by_new = grad * (1 - u) * (1 - new * new)
    by_r, by_u = by_new * hn * r * (1 - r), grad * (states[0] - new) * u * (1 - u)
    by_input = np.concatenate([by_r, by_u, by_new], axis=-1)
    return CellGradient(by_input, np.concatenate([by_r, by_u, by_new * r], axis=-1), grad * u, None)


def _plain(activation: Callable[[Array], Array]) -> Callable[..., CellStep]:
    def step(by_input: Array, by_state: Array, state: Array, memory: Array | None) -> CellStep:
        return CellStep(by_input[..., :0], None, activation(by_input + by_state))

    return step


def _plain_gradient(slope: Callable[[Array], Array]) -> Callable[..., CellGradient]:
    def back(gates: Array, states: tuple[Array, Array], memories: tuple[Array, Array] | None, grad: Array,
             memory_grad: Array | None) -> CellGradient:  # fmt: skip
        found = grad * slope(states[1])
        return CellGradient(found, found, None, None)

    return back


#: mode to a step: of by_input, by_state, the state and the memory before
STEPS: dict[str, Callable[..., CellStep]] = {
    "lstm": _lstm,
    "gru": _gru,
    "rnn_relu": _plain(lambda x: np.maximum(x, 0)),
    "rnn_tanh": _plain(np.tanh),
}
#: mode to its gradient: of what was saved, the states and memories before and behind, and the gradients by those behind
GRADIENTS: dict[str, Callable[..., CellGradient]] = {
    "lstm": _lstm_gradient,
    "gru": _gru_gradient,
    "rnn_relu": _plain_gradient(lambda y: (y > 0).astype(y.dtype)),
    "rnn_tanh": _plain_gradient(lambda y: 1 - y * y),
}

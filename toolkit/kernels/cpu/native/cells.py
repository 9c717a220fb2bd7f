"""What becomes of a recurrent cell's sums: gates and the new state, for `LANES` units at a time.

Gates are in the order in which oneDNN has them: i, f, c, o of an LSTM, u, r, o of a GRU.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from toolkit.kernels.cpu.native.code import Code, Lanes
from toolkit.kernels.cpu.native.functions import sigmoid, tanh


class CellKind(enum.Enum):
    """How a cell is computed.

    Attributes:
        inputs: gates that take the input.
        products: of each product with the state in a step, how many gates it has; the second follows on all of the
            first.
        biases: rows of biases.
    """

    LSTM = "lstm", 4, (4,), 4
    GRU = "gru", 3, (2, 1), 3  # the product for the new state takes what the reset gate leaves
    LINEAR_BEFORE_RESET = "lbr_gru", 3, (3,), 4

    def __init__(self, word: str, inputs: int, products: tuple[int, ...], biases: int):
        self.word = word
        self.inputs = inputs
        self.products = products
        self.biases = biases


def lstm(code: Code, sums: Sequence[Lanes], memory: Lanes, peepholes: Sequence[Lanes] | None) -> tuple[Lanes, Lanes]:
    """The new h and c.

    Args:
        sums: of each gate.
        memory: the last c.
        peepholes: what the gates i, f and o multiply the memory by.
    """
    i, f, g, o = sums
    if peepholes:
        i, f = (code.add(gate, code.mul(memory, peephole)) for gate, peephole in zip((i, f), peepholes, strict=False))
    kept = code.mul(sigmoid(code, f), memory)
    new = code.add(kept, code.mul(sigmoid(code, i), tanh(code, g)))
    if peepholes:
        o = code.add(o, code.mul(new, peepholes[2]))
    return code.mul(sigmoid(code, o), tanh(code, new)), new


def gru_state(code: Code, update: Lanes, new: Lanes, state: Lanes) -> Lanes:
    """u h + (1 - u) tanh(new).

    Args:
        update: the gate u.
        new: the sum of the new state.
        state: the last h.
    """
    rest = code.sub(code.number(1.0, "float"), update)
    return code.add(code.mul(update, state), code.mul(rest, tanh(code, new)))

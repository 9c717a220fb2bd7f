"""The layers of specs: `table` has the table, the other modules fill it."""

from __future__ import annotations

from toolkit.client.spec.layers import convolutions, elementwise, recurrent, shaping, windows, with_variables
from toolkit.client.spec.layers.table import LAYERS, LayerCall, LayerKind, layer

#: what fills the table
MODULES = (with_variables, windows, convolutions, shaping, elementwise, recurrent)

__all__ = ["LAYERS", "MODULES", "LayerCall", "LayerKind", "layer"]

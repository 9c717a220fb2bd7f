"""The spec: a graph described in YAML, or by a Python file that uses the client API.

A YAML spec is one mapping. Every key is optional, but something must make nodes:

| key | value |
|---|---|
| name, description | for people |
| seed | graph seed of random ops |
| device | where everything goes that says nothing else: /job:worker/device:CPU:0 |
| resource_variables | true: resource variables instead of references |
| inputs | NAME: {dtype: float32, shape: [null, 8, 8, 1], default: VALUE} |
| variables | NAME: {shape, dtype, initializer, value, trainable, regularizer, collections, resource, device} |
| nodes | a list of entries: layers, raw ops and scopes (below) |
| loss | {type, name: loss, labels, logits or predictions, tensor, weight, regularization} |
| metrics | NAME: {type: accuracy, labels, predictions, k, tensor} |
| optimizer | {type: adam, name: train, learning_rate, clip_norm, clip_value, and the optimizer's own options} |
| summaries | {scalar: [NAMES], histogram: [NAMES], image: [NAMES]} |
| saver | {max_to_keep: 5, sharded, variables, keep_checkpoint_every_n_hours}, or false; default: of all variables |
| init | false: no `init` operation |
| signatures | KEY: {inputs: {ARG: NAME} or [NAMES], outputs: likewise, method} |
| collections | KEY: [NAMES] |

Entries of `nodes`:

    - layer: conv2d          # a layer (toolkit/client/spec/layers.py lists them and their keys)
      name: conv1            # default: the layer's kind
      input: x               # a name or a list; default: the entry before, or the first input
      filters: 16
      kernel: 3
      activation: relu
    - op: MatMul             # any op of the registry, by its own name
      name: product
      inputs: [x, [[1.0], [2.0]]]       # names, numbers, or {const: VALUE, dtype: TYPE}; or {ARG: ...}
      attrs: {transpose_b: true}
    - scope: block           # a name and variable scope
      nodes: [...]

Any entry may also have device, control_inputs and colocate_with. A name is that of an earlier entry, searched from
the innermost scope outwards, or of any node or tensor of the graph (`conv1/BiasAdd`, `split:1`).

A Python spec either defines `build()`, which returns a MetaGraph, a client Graph, or nothing, or just makes its
nodes at module level; without a returned graph, the default graph is taken.
"""

from __future__ import annotations

from toolkit.client.spec.load import build_spec, build_text

__all__ = ["build_spec", "build_text"]

"""The spec: a graph described in YAML, or by a Python file that uses the client API.

A YAML spec is one mapping of sections (listed below); every one is optional, but something must make nodes.
Entries of `nodes`:

    - layer: conv2d          # a layer
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
    - cond: is_training      # a boolean scalar
      name: choice
      then: {nodes: [...], output: NAME}     # output: by default the last entry; or outputs: {KEY: NAME}
      else: {output: NAME}
    - while: {i: 0, total: x}           # loop variables and their first values
      name: loop
      condition: {nodes: [...]}
      body: {nodes: [...], outputs: {i: NAME, total: NAME}}

    - map: {row: x}          # the same of each row; scan: with what came before
      name: each
      body: {nodes: [...]}
    - call: scaled           # a function of the section `functions`
      name: half             # what it gives: `half`, or `half/KEY`
      inputs: {v: x, factor: 0.5}
    - dataset: {records: "train-*.tfrecord"}      # or lines, arrays, tensors, range; data/image, data/label
      name: data
      features: {image: {shape: [64]}, label: {dtype: int64}}
      shuffle: {buffer: 1000}
      repeat: null           # for ever
      batch: 32

Any entry may also have device, control_inputs and colocate_with. A name is that of an earlier entry, searched from
the innermost scope outwards, or of any node or tensor of the graph (`conv1/BiasAdd`, `split:1`). What a branch gives
has the name of its entry, `choice` or `choice/KEY`; so have the variables of a loop, `loop/total`.

Functions see the inputs and variables around them, which every call is handed; ops may name them, too
(`attrs: {then_branch: scaled, ...}` of StatelessIf), if they use their own inputs alone:

    functions:
      scaled:
        inputs: {v: {shape: [null, 4]}, factor: {}}
        nodes:
          - {layer: multiply, input: [v, factor]}

Variables may begin with what a checkpoint holds (`start_from: FOLDER`, or of some variables, or by other names):

    start_from: {checkpoint: ckpt/model-1000, variables: {"old/": "new/", old_step: global_step}}

Parameters, includes and repetition are written out before anything else is looked at:

    parameters:
      units: 64                                    # --set units=128 gives another value, of the same type
      depth: {type: integer, default: 3, minimum: 1, description: hidden layers}
    include: [inputs.yaml]                         # its sections come before ours; in our folder, or --include-dir
    nodes:
      - repeat: ${depth}                           # or a list of values
        as: i
        nodes:
          - {layer: dense, name: "hidden${i}", units: "${units * 2}"}    # + - * / // % ( )
      - {include: block.yaml, set: {units: 10}}    # the nodes of a file that has parameters of its own

`$${` stands for `${`. All mistakes are told in one run, each as file:line:column. `graphmill build --schema` prints a
JSON Schema of specs, which editors complete and check with.

A Python spec either defines `build()`, which returns a MetaGraph, a client Graph, or nothing, or just makes its
nodes at module level; without a returned graph, the default graph is taken.
"""

from __future__ import annotations

from toolkit.client.spec.load import build_spec, build_text

__all__ = ["build_spec", "build_text"]

"""Edits of models: rename, rewire, insert, remove, merge, and what belongs to a graph besides.

A list of edits is a YAML file: one key for each, the kind of edit, with its arguments below.

    - rename_nodes: {nodes: "tower/*", to: "model/*"}
    - set_batch_size: {size: 8}
    - insert_after: {tensor: "logits:0", op: Softmax, called: probabilities}
    - remove_nodes: {nodes: "*/Dropout"}
    - add_signature:
        key: classify
        inputs: {image: "x:0"}
        outputs: {scores: "probabilities:0"}

`graphmill edit --schema` prints the JSON Schema of such files; `graphmill edit --kinds` the kinds with their arguments.
Edits are made one after the other, each on what the ones before have made; nothing is written unless all of them could
be made and the graph that came out is sound.

What names nodes of a graph: a name ("conv1/BiasAdd"), a glob over the whole name in which * matches slashes too
("tower/*"), or a regular expression in RE2's syntax that is searched for, after re: ("re:/Adam(_1)?$"). What gives new
names repeats a glob's stars, or an expression's groups (\\1).

Whatever names a node that is renamed follows: inputs, control inputs, colocation, signatures, collections (variables,
queue runners, contexts of loops and conditionals), savers, asset files, the object graph. Keys of a checkpoint do not:
they are values in the graph, and files lie elsewhere.
"""

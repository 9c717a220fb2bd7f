"""tf.contrib.graph_editor: operations of a graph found, copied and given other inputs.

`elements` makes lists of operations and tensors of what programs hand over, `walks` follows edges, `selecting` takes
names, `views` are parts of a graph with their inputs and outputs, `rewiring` gives operations other inputs, `copying`
makes operations again.
"""

"""Ragged tensors: tensors whose rows have lengths of their own.

`partition` says where rows begin and end, `tensor` puts values beside it, `value` is what sessions give; `factory`,
`segments` and `conversion` make them, `slicing`, `elementwise`, `reductions` and `arrays` compute with them, `strings`
has texts taken apart. Functions of dense tensors come here through the dispatch of `toolkit.tensorflow`.
"""

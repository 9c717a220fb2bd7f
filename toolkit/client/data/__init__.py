"""Datasets and iterators.

`leaves` and `structure` say what one element is, `dataset` has the class with its methods; `sources`, `files`,
`elements`, `batching`, `mapping`, `grouping`, `choosing` and `generator` make the datasets; `iterators` go through
them.
"""

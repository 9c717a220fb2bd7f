"""Linear algebra: decompositions, contractions, functions of whole matrices."""

"""Linear operators: matrices that are known by what they do (tf.linalg.LinearOperator).

`base` is what all share, by way of the dense matrix; `dense`, `diagonal`: kinds of matrices;
`composed`: operators made of others.
"""

from toolkit.client.linear_operators import composed, dense  # what operators make of themselves

__all__ = ["composed", "dense"]

"""Functions made from Python: graphs of their own, what they take from around them, FunctionDefs.

`graph` is the graph in which a function is made and what it captures, `ordering` the order of what has effects in it,
`definition` writes FunctionDefs, `trace` joins them: a Python function and the types of its arguments become a function
of the library, with the tensors around it that it has to be given.
`defined` has functions that programs define and call by name (Defun).
"""

#: where a graph keeps the functions that are called by name in it: gradients ask for their own gradient functions
CALLED = "toolkit.client.functions.called"

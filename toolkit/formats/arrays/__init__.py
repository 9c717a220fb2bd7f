"""Arrays and tensors: messages, NumPy's files, what is given on a command line and what is written for it."""

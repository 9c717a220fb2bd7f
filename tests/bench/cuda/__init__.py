"""`python -m tests.bench --suite cuda`: ours beside PyTorch and JAX on one card, at the same precision.

A network is written three times (`networks`), over the same weights by name: with our client, with PyTorch's functions
and with JAX's. An engine (`engines`) puts the weights into variables of its own on the card, and makes a step of it
that takes nothing in and gives nothing back, so that data stays on the card for everybody. Each engine with a network
is a process (`worker`), stopped while another is measured (`turns`); outputs are compared before times count
(`agreement`), and `suite` makes rows of them, those that matter most first, until its time is up.
"""

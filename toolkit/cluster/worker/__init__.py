"""A task that masters and other workers ask over the wire.

service       TensorFlow's WorkerService, method by method
calls         tensors that are waited for, steps that are given up, requests that come twice
task          devices, sessions, steps: what the methods are about
session       what one master's session has here: graphs, and the worker that runs them
graphs        a registered graph: with feeds and fetches as arguments and results, or sent while it runs
steps         the steps that are under way, and where their tensors meet
partial       steps that are fed and fetched bit by bit
transfers     asking other workers for tensors
step_logs     who received what, and when, for timelines
costs         what nodes cost, as a CostGraphDef
"""

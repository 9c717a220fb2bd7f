"""Batch inference: one model over many files, at all actors of a Ray cluster.

actor       runs one shard after another, in a process that Ray gives it
pool        the actors: who has which shards, what is tried again, what is told

Which files there are and what becomes of them: `toolkit.runtime.shards`.
"""

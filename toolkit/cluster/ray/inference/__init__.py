"""Batch inference: one model over many files, at all actors of a Ray cluster.

shards      which files there are, and what each one's results are called
manifest    what a folder of results holds, and what of it is complete
actor       runs one shard after another, in a process that Ray gives it
pool        the actors: who has which shards, what is tried again, what is told
"""

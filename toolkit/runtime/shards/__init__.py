"""One model over many files, whose results are files in a folder.

files       which files there are, and what each one's results are called
manifest    what a folder of results holds, and what of it is complete
reading     the arrays of a file
requests    each file is a request, and several run as one step: `run --coalesce`

Batches over all actors of a Ray cluster (`toolkit.cluster.ray.inference`) use them as well.
"""

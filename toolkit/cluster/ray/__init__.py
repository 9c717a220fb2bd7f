"""Steps that actors of a Ray cluster run: each task is an actor, tensors between tasks are Ray's objects.

library       the library, imported when it is asked for
connection    a Ray of this process's own, or one that is joined
placing       what a task asks of Ray, and what is missing where it has no room
answers       calls of actors, and what goes wrong in them or on the way
actor         a task, in the process that Ray gives it
transfers     tensors that one task asks another one for
task          an actor as its master calls it
worker        a session's worker at an actor
engine        the actors of a cluster: started, found again after a restart, ended
session       a master's session in this process
kind          targets of the form ray and ray://ADDRESS
run_settings  what `graphmill run --engine` tells its actors
inference/    batches over all of a cluster: shards, and the actors that run them
"""

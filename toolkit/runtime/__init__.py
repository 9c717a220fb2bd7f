"""Running graphs: sessions, executors, rendezvous, resources, the training lifecycle."""

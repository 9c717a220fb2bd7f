"""The master: sessions over the tasks of a cluster, and the service that clients ask for them."""

"""Steps that many processes run: clusters, masters, workers, their services, and engines that carry partitions.

rpc/      TensorFlow's gRPC services: methods, statuses, channels
client/   sessions at a master: `Session("grpc://...")`
master/   what a session of a cluster does, over workers near and far; its service
worker/   a task that is asked by masters and by other workers; its service
ray/      tasks as actors of a Ray cluster
"""

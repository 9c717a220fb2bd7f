"""TensorFlow's gRPC services: methods, statuses, channels."""

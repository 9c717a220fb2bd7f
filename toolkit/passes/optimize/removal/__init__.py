"""What a graph can do without: nodes, checks, edges, attributes, inputs."""

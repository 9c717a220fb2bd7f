"""The domain model: graphs, nodes, edges, types, shapes, devices, functions. No numpy."""

"""Looking inside a run: probes see every node with its inputs, outputs and times."""

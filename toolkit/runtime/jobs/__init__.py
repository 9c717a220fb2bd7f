"""`graphmill run` as calls: its options, requests, feeds, hooks, probes and reports."""

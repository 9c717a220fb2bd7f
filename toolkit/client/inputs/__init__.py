"""Input by queues, staging areas and messages of examples: batches that threads collect."""

"""The pipeline: the tables of passes over a block, in order, for each backend, and the emission of what they leave."""

"""What `place` decides with: constraints, strategies, and the simulation that judges them."""

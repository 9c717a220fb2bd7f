"""Programs that wait, cut into segments that wait for nothing once they have begun."""

"""What training adds: gradients, tables of rows, optimizer updates in place."""

"""Arrays: shapes, slices, joins, order, places of elements."""

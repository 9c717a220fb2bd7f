"""What sessions are made of: feeds, fetches, what is asked for again, fields of ConfigProto, requests put together."""

"""The same graph in another form: for older releases, in a normal order, with other names, with prints."""

"""Files of records: TFRecord and Riegeli, their checksums, events and traces in them."""

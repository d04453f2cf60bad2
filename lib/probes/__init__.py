"""What figures need of a network beyond measures: one module each, with `probe(subject, data)`."""

"""Jobs and their records: define them, look them up, and run one job or many at once."""

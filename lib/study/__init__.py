"""From what is asked for to what is on record: jobs, records, runs, many at once, looked up or made."""

"""The report: notebooks executed, laid out on one page, compared with the reference."""

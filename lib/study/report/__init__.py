"""Reporting: the papers' printed values, fixed claims, tables, figures and the report; no torch."""

"""Reporting without torch: the papers' printed values, fixed claims, tables, figures and the report."""

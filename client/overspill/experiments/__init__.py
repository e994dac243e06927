"""Compares the arms of an experiment: estimates with confidence intervals, and a report. Pure."""

"""Advice on a policy, and the comparison of an experiment's arms, both from what was counted. Pure."""

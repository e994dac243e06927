"""Advice on a policy, from what was counted of a tenant's tools."""

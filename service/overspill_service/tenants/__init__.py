"""Tenants: their limits, their keys, and who a request comes from."""

"""The catalog on Redis."""

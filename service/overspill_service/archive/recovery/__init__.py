"""Repair of a catalog from the object store: lost entries, missed expiries, entries without objects."""

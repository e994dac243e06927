"""Delivery of outputs: to the service now, to the spool, or later in the background."""

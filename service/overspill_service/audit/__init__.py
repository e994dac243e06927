"""The audit log: one line for each change, each refusal and, if a tenant wants it, each read."""

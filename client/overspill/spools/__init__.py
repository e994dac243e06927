"""What waits on this machine's disk for the service: kept, read where it is, uploaded later."""

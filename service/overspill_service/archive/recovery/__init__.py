"""What puts a catalog right again from the object store."""

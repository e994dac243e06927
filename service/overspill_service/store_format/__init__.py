"""The stored bytes, without I/O: frames, indexes, seek tables, and the names of objects."""

"""The stored bytes, without I/O: frames, index, frame map, seek table, and the names of objects."""

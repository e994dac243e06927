"""The spool: captures that wait on this machine's disk. They are read there, and uploaded later."""

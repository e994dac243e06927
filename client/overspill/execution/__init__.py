"""Execution of code: the loop thread, worker threads, waiting, forks and the end of the process."""

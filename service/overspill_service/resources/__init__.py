"""The limited resources of a process: memory, threads, connections, tasks."""

"""What a process has a limited amount of: memory, threads, connections, tasks."""

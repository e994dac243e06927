"""`overspill run`: the child process, what it printed, and what is shown in its place."""

"""`overspill run`: the child process, its output, and the text that is shown instead."""

"""The command line `overspill`: a thin face of the client, for people and for agents in a shell.

Data goes to standard output, everything else to standard error. What is captured is untrusted: it is
made harmless before a terminal sees it.
"""

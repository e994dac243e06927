"""The producer's part of live captures: an output that is stored while it is being written.

What goes over the network is behind the protocols in `ports`; this package knows no HTTP.
"""

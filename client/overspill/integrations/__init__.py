"""Where Overspill meets agents: one thin module for each framework, agent programs and gateways.

A framework's module guards every tool and adds the tools that read. It needs only its own framework, and
only the command line imports anything from here.
"""

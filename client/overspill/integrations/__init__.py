"""Adapters for agents: one thin module for each framework, for agent programs and for gateways.

A framework's module guards every tool and adds the tools that read. It needs only its own framework, and
only the command line imports anything from here.
"""

"""One thin module for each agent framework: it guards every tool, and adds the tools that read.

None is imported by the rest of the package, and each needs only its own framework.
"""

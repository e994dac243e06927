"""From what was counted: advice on a policy, and how the arms of an experiment compare. Pure."""

"""Where an output goes and when: the service, the spool, and what is sent later in the background."""

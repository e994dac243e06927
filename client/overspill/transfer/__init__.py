"""Transfer of requests and contents to the service and back."""

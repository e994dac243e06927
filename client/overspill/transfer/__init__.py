"""How requests and contents go to the service and back."""

"""The modules that contain the HTTP API's routes."""

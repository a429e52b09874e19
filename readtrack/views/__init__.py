"""The HTTP endpoints that readtrack answers itself."""

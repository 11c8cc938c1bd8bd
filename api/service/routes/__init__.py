"""Serve the paths, one module for each family: translate, ask the service, and translate back."""

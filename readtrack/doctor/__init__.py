"""Examines the living system: what it finds, what that means, and what to do. It changes nothing."""

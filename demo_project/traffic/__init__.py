"""Simulated visitors: `python -m demo_project.traffic`. Standard library only, loopback targets
only.

Each visitor is a thread that browses like a person: it arrives with an empty cookie jar, follows
the links it finds appealing, perhaps signs in and publishes something, leaves, and comes back as
somebody else.
"""

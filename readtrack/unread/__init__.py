"""Making categories unread when something new is in them, and read where a site or an account
starts with no dots.
"""

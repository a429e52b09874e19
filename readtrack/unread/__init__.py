"""Unread state: what makes categories unread."""

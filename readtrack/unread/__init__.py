"""Which categories a post is news for, and making them unread."""

"""The migrations of a site whose author forgot to make them."""

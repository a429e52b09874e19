"""The newsroom: categories, posts and the pages that show them."""

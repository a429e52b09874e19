"""What visitors, other sites and staff without permission may try."""

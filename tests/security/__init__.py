"""What visitors, other sites, tenants, local users and staff without permission may try."""

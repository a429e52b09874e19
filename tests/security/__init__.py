"""What other sites, visitors and their browsers must not bring about."""

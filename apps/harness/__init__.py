"""What every application scenario shares: processes, servers, sites, clients."""

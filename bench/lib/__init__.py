"""What the measurements and checks share: servers, PHP, load, figures."""

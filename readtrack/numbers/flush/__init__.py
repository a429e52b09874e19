"""What a flush stores by time; `steps` has the moments."""

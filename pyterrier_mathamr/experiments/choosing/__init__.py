"""What is chosen on some topics and measured on others."""

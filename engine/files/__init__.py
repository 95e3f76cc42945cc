"""What is on disk: model files read as far as their headers, trusted in nothing, never written."""

"""What is measured on maps and frequency sets."""

"""What operators see of the service in numbers: declared once, counted by every process, told by any of them."""

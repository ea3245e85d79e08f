"""What people see of long work: progress bars, what is wrong with their posts, what an artifact holds."""

"""What the sparse indexes share: rows to posts, counts of terms, one part after a build, rankings."""

"""What is trained of MaRF: formula encoder, fusion, the linear maps and where they start."""

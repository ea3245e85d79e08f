"""Cross-validated results: settings are tuned on some topics and tested on others; and other kinds of text."""

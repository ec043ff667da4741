"""What keeps a face from being shown: cover.py hides a whole picture that may not be seen."""

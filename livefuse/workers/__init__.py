"""Where jobs run: local.py is this process."""

"""What is typed: one module for each command or family of commands, each with `add_commands`."""

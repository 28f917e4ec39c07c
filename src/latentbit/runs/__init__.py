"""What a run leaves on the disk: its directory and its checkpoints."""

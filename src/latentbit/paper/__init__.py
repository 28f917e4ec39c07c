"""The paper's tables: its numbers, our runs of the same recipes, both side by side."""

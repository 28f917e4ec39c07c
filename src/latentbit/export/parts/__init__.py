"""What the exporters share: the walk over the layers, and what the larger ones are made of."""

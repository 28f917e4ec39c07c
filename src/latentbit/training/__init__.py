"""What the loop in train.py calls: schedule, optimizers, evaluation, display, signals."""

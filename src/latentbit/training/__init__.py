"""The loop, its state, and what they call: schedule, optimizers, evaluation, display, signals."""

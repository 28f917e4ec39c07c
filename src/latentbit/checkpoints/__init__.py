"""Weights in safetensors files, without pickle: the state of a training, and a binary network to keep or to ship."""

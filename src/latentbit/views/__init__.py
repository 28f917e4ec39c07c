"""A network with B and with W: the two views, what is caught of them, statistics of their own."""

from latentbit.views.recalibrate import recalibrate
from latentbit.views.taps import (
    FeatureTap,
    InputTap,
    OutputTap,
    ViewError,
    classifier_width,
    last_linear,
    stage_tap,
)
from latentbit.views.two_view import TwoView, Views, latent_view, stale_view

__all__ = [
    "FeatureTap",
    "InputTap",
    "OutputTap",
    "TwoView",
    "ViewError",
    "Views",
    "classifier_width",
    "last_linear",
    "latent_view",
    "recalibrate",
    "stage_tap",
    "stale_view",
]

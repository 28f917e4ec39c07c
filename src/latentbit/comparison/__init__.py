"""Methods on the same footing: trained by one recipe, put in one table."""

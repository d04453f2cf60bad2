"""Sets of real photographs of places, whose correspondences come from their geometry."""

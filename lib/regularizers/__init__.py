"""Regularisers: one module each, with `build(weight, **options)`; each adds a scalar to the loss."""

"""What the papers' printed numbers say of themselves: which test gave a p-value, what a mean is of."""

"""A weighted loss with its weights made even: each triplet gets the batch's mean weight.

What is left of DSM's weights (Eq. 5) is what they do to the length of a step, as a learning rate times
the mean weight would; which triplets are learned from is as with weights of 1.
"""

from torch import Tensor, nn

from lib.descriptions import Triplets


class EvenWeights(nn.Module):
    """Losses (n,), the mean weight times d_pos − d_neg.

    Args:
        loss: whose `seen` holds the mean of its weights, a constant for the gradient, as "mean_weight".
    """

    def __init__(self, loss: nn.Module):
        super().__init__()
        self.loss = loss

    def forward(self, triplets: Triplets) -> Tensor:
        """The losses; `seen` is that of the loss with uneven weights."""
        self.loss(triplets)
        self.seen = self.loss.seen
        return self.seen["mean_weight"] * (triplets.positive - triplets.negative)


def build(loss: nn.Module) -> EvenWeights:
    """The loss; see `EvenWeights`."""
    return EvenWeights(loss)

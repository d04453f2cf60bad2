"""AdaSample: a positive is drawn with probability p_i ∝ d(x_i, x_i0)^(λ / L_avg) (Eq. 13, Alg. 1).

As the average loss falls the exponent grows and harder positives are drawn; λ = 0 draws uniformly
(the random pair sampler), λ → ∞ always the farthest (`lib.samplers.hardpos`). The weight w_i of a drawn
pair is `lib.losses.pair_weights`; steps 1 and 2 of Alg. 1 are in `lib.samplers.candidates`,
steps 7 and 8 in `lib.training`.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from lib.losses.descriptions import Triplets
from lib.losses.distances import Distance
from lib.samplers.candidates import Choice, Pool, uniform_below

# Two generated patches can have equal descriptors; log 0 would make the distance's power indefinite.
# Only log d has to be finite here, so the bound is far below any distance between different patches.
# The larger constant of the same name in `lib.losses.pair_weights` bounds the weight 1/d.
SMALLEST_DISTANCE = 1e-6


class AdaSample:
    """The sampler, with the moving average of past losses, L_avg, that it uses.

    Args:
        distance: d of Eq. 13, taken at power 1; it need not be the loss's.
        lam: λ, finite and 0 or more.
        average: how L_avg averages past batch losses: "exponential" (rate 0.1, from the first batch's
            loss), "windowed" (mean of the last 100) or "cumulative" (mean of all). The first batch
            has no loss before it and is drawn at random.
        reuse: whether to train on the candidates' own descriptors, from one training-mode forward
            pass over all of them, as Alg. 1 reads; otherwise candidates are described without
            gradient and the drawn pair is forwarded again.
        of: what L_avg averages over a batch: the recipe's own "loss", or a "hinge" with margin 1.

    Raises:
        ValueError: λ is negative, infinite or no number, or the average is unknown.
    """

    rate = 0.1
    window = 100

    def __init__(
        self,
        distance: Distance,
        lam: float,
        average: str = "exponential",
        reuse: bool = False,
        of: str = "loss",
    ):
        if not math.isfinite(lam) or lam < 0:
            raise ValueError(f"λ must be finite and 0 or more, got {lam}; for λ → ∞ take hardpos")
        if average not in ("exponential", "windowed", "cumulative"):
            raise ValueError(
                f"average must be 'exponential', 'windowed' or 'cumulative', got {average!r}"
            )
        if of not in ("loss", "hinge"):
            raise ValueError(f"of must be 'loss' or 'hinge', got {of!r}")
        self.lam, self.distance, self.average, self.reuse, self.of = lam, distance, average, reuse, of
        # L_avg is the mean of these: the last losses, or their running average alone.
        self._losses = torch.empty(0)
        self._batches = 0

    @property
    def average_loss(self) -> Tensor | None:
        """L_avg, a scalar, or None before the first loss."""
        return self._losses.mean() if self._batches else None

    @property
    def exponent(self) -> Tensor | None:
        """λ / L_avg, a scalar, or None before the first loss; at most 1e30, so that it is finite.

        It gets that large if all losses are zero; Eq. 13 then draws the farthest candidate.
        """
        average = self.average_loss
        return None if average is None else (self.lam / average.clamp(min=1e-30)).clamp(max=1e30)

    @property
    def seen(self) -> dict[str, Tensor]:
        """The curve "exponent", once there is an exponent."""
        return {} if self.exponent is None else {"exponent": self.exponent}

    def observe(self, triplets: Triplets, losses: Tensor) -> None:
        """Update L_avg with a batch.

        Args:
            triplets: triplets of n pairs.
            losses: (n,) their losses, unweighted.

        Raises:
            ValueError: the mean loss of the batch is negative.
        """
        if self.of == "hinge":
            losses = (1 + triplets.positive - triplets.negative).clamp(min=0)
        loss = losses.detach().mean().reshape(1)
        if loss < 0:
            raise ValueError(
                f"AdaSample's exponent λ / L_avg (Eq. 13) has no meaning for a loss of {float(loss):g}; "
                "give the sampler of='hinge'"
            )
        past = self._losses.to(loss)
        if self.average == "windowed":
            self._losses = torch.cat([past, loss])[-self.window :]
        elif not self._batches:
            self._losses = loss
        else:
            rate = self.rate if self.average == "exponential" else 1 / (self._batches + 1)
            self._losses = (1 - rate) * past + rate * loss
        self._batches += 1

    def choose(self, pool: Pool, describe: Callable[[], Tensor], generator: torch.Generator) -> Choice:
        """Choose a random anchor of each class, and a positive among its other candidates by Eq. 13.

        Args:
            pool: candidates of n classes, at most c for each.
            describe: called once, returns their unit descriptors (n, c, k).
            generator: on the pool's device.
        """
        anchor = uniform_below(pool.counts, generator)
        distance = anchor_distances(pool, describe(), anchor, self.distance)
        exponent = self.exponent
        if exponent is None:
            exponent = torch.zeros((), device=distance.device)
        logits, log_normaliser = log_probabilities(distance, exponent)
        positive = torch.multinomial(logits.exp(), 1, generator=generator).squeeze(1)
        drawn = distance.gather(1, positive[:, None]).squeeze(1)
        return Choice(anchor, positive, drawn, log_normaliser)

    def state_dict(self) -> dict[str, Tensor]:
        """L_avg's state, for a checkpoint."""
        return {"losses": self._losses, "batches": torch.tensor(self._batches)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore a state that `state_dict` returned."""
        self._losses, self._batches = state["losses"], int(state["batches"])


def anchor_distances(pool: Pool, descriptors: Tensor, anchor: Tensor, distance: Distance) -> Tensor:
    """d(x_i, x_i0) of every candidate to its class's anchor, without gradient.

    Args:
        pool: candidates of n classes, at most c for each.
        descriptors: (n, c, k) unit descriptors.
        anchor: (n,) the slot of the anchor.
        distance: taken at power 1.

    Returns:
        (n, c), floored at a small positive number; NaN where there is no candidate: at the anchor
        and at empty slots.
    """
    descriptors = descriptors.detach()
    rows = torch.arange(len(anchor), device=anchor.device)
    d = distance.root(distance.paired(descriptors, descriptors[rows, anchor][:, None]))
    nobody = ~pool.valid
    nobody[rows, anchor] = True
    return d.clamp(min=SMALLEST_DISTANCE).masked_fill(nobody, torch.nan)


def log_probabilities(distance: Tensor, exponent: Tensor) -> tuple[Tensor, Tensor]:
    """log p_i of Eq. 13, where the probabilities of each class sum to one.

    They are computed in log space, relative to the farthest candidate: the exponent grows without bound
    as the loss falls, and d to its power would leave every floating-point range.

    Args:
        distance: (n, c) from `anchor_distances`.
        exponent: λ / L_avg, a scalar tensor, finite and 0 or more.

    Returns:
        (n, c) logarithms of probabilities, −∞ where there is no candidate; and (n,) log Z,
        Z = Σ_i d_i^exponent.
    """
    logarithm = distance.log()
    farthest = logarithm.nan_to_num(-torch.inf).amax(dim=1, keepdim=True)
    logits = (exponent * (logarithm - farthest)).nan_to_num(-torch.inf, neginf=-torch.inf)
    # p = d^exponent / Σ d^exponent, as logarithms.
    log_sum = logits.logsumexp(dim=1, keepdim=True)
    return logits - log_sum, (exponent * farthest + log_sum).squeeze(1)

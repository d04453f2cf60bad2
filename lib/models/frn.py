"""Filter response normalisation and its thresholded linear unit (Singh and Krishnan, 2019), as HyNet has
them after each convolution (Sec. 3.3, Eq. 8).

With the two as plain tensor operations, a training step on a CPU takes three times as long as L2-Net's,
because each operation passes over the whole map. `Fused` runs an FRN and its TLU as one handwritten
function: a stretch of patches stays in the cache through all passes, and only the input is kept for the
backward pass.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

# Values in a stretch on a CPU (half a megabyte in float32), and in the rows that its passes run along.
STRETCH = 2**17
ROW = 256


class FRN(nn.Module):
    """f̂ = γ f / √(ν² + |ε|) + β of maps (n, c, h, w), ν² the mean of f² over a map's pixels (Eq. 8).

    No mean is subtracted, and the result does not depend on other patches. It is computed in float32 at
    least; in training `FRNTLU` computes it.

    Args:
        channels: c; each channel has a γ (``weight``), initially 1, and a β (``bias``), initially 0.
        epsilon: ε, kept in a buffer of shape (1,), as in the published checkpoints.
    """

    def __init__(self, channels: int, epsilon: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, channels, 1, 1))
        self.bias = nn.Parameter(torch.zeros(1, channels, 1, 1))
        self.register_buffer("eps", torch.tensor([epsilon]))

    def forward(self, maps: Tensor) -> Tensor:
        """Return f̂ in the type of the maps."""
        wide = maps.to(_wide(maps))
        power = wide.square().mean(dim=(2, 3), keepdim=True)
        return (self.weight * wide * (power + self.eps.abs()).rsqrt() + self.bias).to(maps.dtype)


class TLU(nn.Module):
    """max(f̂, τ) of maps (n, c, h, w), with one threshold τ per channel, initially −1 (Sec. 4)."""

    def __init__(self, channels: int):
        super().__init__()
        self.tau = nn.Parameter(-torch.ones(1, channels, 1, 1))

    def forward(self, maps: Tensor) -> Tensor:
        """Return the maps where they are above τ, else τ."""
        return torch.maximum(maps, self.tau.to(maps.dtype))


class Fused(nn.Sequential):
    """A sequence of layers in which a TLU follows each FRN; the two run as one.

    They run one by one in evaluation mode with gradients, because torch.func, which computes per-sample
    gradients, transforms plain tensor operations only. So they do while a network is traced or exported,
    because `FRNTLU` splits a batch by its number.
    """

    def forward(self, maps: Tensor) -> Tensor:
        """Return the output of the last layer."""
        recorded = torch.jit.is_tracing() or torch.compiler.is_exporting()
        fused = (self.training or not torch.is_grad_enabled()) and not recorded
        layers = iter(self)
        for layer in layers:
            if fused and isinstance(layer, FRN):
                maps = FRNTLU.apply(maps, layer.weight, layer.bias, next(layers).tau, layer.eps)
            else:
                maps = layer(maps)
        return maps


class FRNTLU(torch.autograd.Function):
    """max(γ f / √(ν² + |ε|) + β, τ) of maps (n, c, h, w); γ, β and τ of shape (1, c, 1, 1), ε of (1,).

    Maps have the channels last in memory. Where f̂ equals τ, the gradient goes to τ. With
    r = 1 / √(ν² + |ε|) for each map, g the gradient where f̂ > τ and else 0, Σ over a map's N pixels:

    ∂f = γ r (g − f r² Σ g f / N), ∂γ = Σ_n r Σ g f, ∂β = Σ_n Σ g; ∂τ is the rest of the gradient.
    """

    @staticmethod
    def forward(ctx, maps: Tensor, weight: Tensor, bias: Tensor, tau: Tensor, eps: Tensor) -> Tensor:
        rows = _Rows(maps)
        shift, threshold = rows.per_channel(bias), rows.per_channel(tau)
        out = torch.empty_like(maps, memory_format=torch.channels_last)
        inverse = torch.empty(maps.shape[:2], dtype=rows.wide, device=maps.device)
        for f, y, r in rows.stretches((maps, out), (inverse,)):
            f = f.to(rows.wide)
            squares = f * f
            r.copy_(rows.channel_sums(squares.sum(dim=1))).div_(rows.pixels).add_(eps.abs()).rsqrt_()
            torch.addcmul(shift, f, rows.per_map(r * weight.view(-1)), out=squares)
            torch.maximum(squares, threshold, out=y)
        ctx.save_for_backward(maps, weight, bias, tau, inverse)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        maps, weight, bias, tau, inverse = ctx.saved_tensors
        rows = _Rows(maps)
        excess = rows.per_channel(bias - tau)
        to_maps = torch.empty_like(maps, memory_format=torch.channels_last)
        factor = inverse * weight.view(-1)
        shrunk = factor * inverse.square() / -rows.pixels
        along = torch.empty_like(inverse)
        to_bias, to_both = torch.zeros_like(excess), torch.zeros_like(excess)
        by_map = rows.per_map(factor), shrunk, along
        for f, g, to_f, scale, less, product in rows.stretches((maps, gradient, to_maps), by_map):
            f, g = f.to(rows.wide), g.to(rows.wide)
            # Recompute f̂ − τ, so that the output need not be kept.
            passed = torch.addcmul(excess, f, scale).gt_(0).mul_(g)
            to_both += g.sum(dim=(0, 1))
            to_bias += passed.sum(dim=(0, 1))
            product.copy_(rows.channel_sums((passed * f).sum(dim=1)))
            torch.addcmul(passed.mul_(scale), f, rows.per_map(less * product), out=to_f)
        to_bias, to_both = rows.channel_sums(to_bias), rows.channel_sums(to_both)
        to_weight = (inverse * along).sum(dim=0)
        by_channel = (to.view_as(weight) for to in (to_weight, to_bias, to_both - to_bias))
        return to_maps, *by_channel, None


class _Rows:
    """Maps (n, c, h, w) as several rows per patch, each of some pixels' channels, about `ROW` values.

    The channels of one pixel alone can be too few for a processor's vectors.
    """

    def __init__(self, maps: Tensor):
        count, self.channels, height, width = maps.shape
        self.pixels = height * width
        self.wide = _wide(maps)
        self.folded = math.gcd(self.pixels, 1 << max(0, (ROW // self.channels).bit_length() - 1))
        patches = STRETCH // (self.pixels * self.channels) if maps.device.type == "cpu" else count
        self.stretch = max(1, patches)

    def stretches(
        self, maps: tuple[Tensor, ...], by_map: tuple[Tensor, ...]
    ) -> Iterator[tuple[Tensor, ...]]:
        """Iterate over the rows of a few patches at a time (channels_last views), with values by map."""
        channels_last = [tensor.contiguous(memory_format=torch.channels_last) for tensor in maps]
        shape = -1, self.pixels // self.folded, self.folded * self.channels
        rows = [tensor.permute(0, 2, 3, 1).reshape(shape) for tensor in channels_last]
        return zip(*(tensor.split(self.stretch) for tensor in (*rows, *by_map)), strict=True)

    def per_channel(self, values: Tensor) -> Tensor:
        """Repeat one value per channel along a row."""
        return values.detach().view(-1).to(self.wide).repeat(self.folded)

    def per_map(self, values: Tensor) -> Tensor:
        """Repeat one value per map, (m, c), along the rows of its patch."""
        # `cat` is several times as fast as `repeat`, which costs as much as a pass over the maps.
        return torch.cat([values] * self.folded, dim=1)[:, None]

    def channel_sums(self, row: Tensor) -> Tensor:
        """Sums (…, c) over the pixels of a row."""
        return row.unflatten(-1, (self.folded, self.channels)).sum(dim=-2)


def _wide(maps: Tensor) -> torch.dtype:
    """Return float32 or wider: squares of half precision overflow, and their sums lose digits."""
    return torch.promote_types(maps.dtype, torch.float32)

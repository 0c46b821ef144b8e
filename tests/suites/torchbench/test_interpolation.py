"""Super SloMo computes what the original did: flows, warped frames, and its own loss."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torchvision.models import vgg16

from suites.spec import Attention, Mode
from suites.torchbench.interpolation import SlowMotion, roughness, warped
from suites.torchbench.recipe import Ask
from tests.suites import parity


@torch.no_grad()
def test_outputs_are_those_of_the_original():
    """The frame between and the loss of the filled network are the original's."""
    module = parity.filled(SlowMotion().network(Attention.FUSED))
    wave = parity.wave(1, 3, 352, 352)

    parity.assert_computes("Super_SloMo", module(torch.tensor([2]), wave, 0.5 * wave, 0.25 * wave))


def test_warp():
    """A flow of one pixel to the right and two down shows what lies there, half a pixel off as in the original."""
    image, flow = parity.wave(1, 1, 8, 8), torch.tensor([1.5, 2.5])[None, :, None, None].expand(1, 2, 8, 8)
    found = warped(image, flow)

    assert torch.allclose(image[..., 2:, 1:], found[..., :-2, :-1], atol=1e-5)


def test_warp_far_out():
    """A flow in half precision, as autocast makes it, leaves the grid exact, beyond 256 pixels too."""
    image, flow = parity.wave(1, 1, 2, 400), torch.full((1, 2, 2, 400), 0.5)

    assert torch.equal(warped(image, flow), warped(image, flow.bfloat16()))


def test_roughness():
    """A ramp that rises by 3 in each column and falls by 2 in each row has a roughness of 5."""
    ramp = 3 * torch.arange(4.0) - 2 * torch.arange(5.0)[:, None]

    assert 5 == roughness(ramp.expand(1, 2, 5, 4)).item()


def test_each_image_has_its_time():
    """Two images in one batch at different times give what each gives alone."""
    module = parity.filled(SlowMotion().network(Attention.FUSED))
    frames = parity.wave(6, 3, 32, 32).chunk(3)
    times = torch.tensor([0, 6])
    with torch.no_grad():
        both = module(times, *frames)[0]
        alone = [module(times[[at]], *(each[[at]] for each in frames))[0] for at in (0, 1)]
        swapped = module(times.flip(0), *frames)[0]

    assert torch.allclose(torch.cat(alone), both, atol=1e-4)
    assert not torch.allclose(swapped, both, atol=1e-2)


def test_look_is_frozen():
    """What judges how alike frames look is VGG-16 up to its tenth convolution, in torchvision's shapes, and frozen."""
    with torch.device("meta"):
        look = SlowMotion().network(Attention.FUSED).look
        whole = vgg16(weights=None).features

    assert [each.shape for each in whole[:22].parameters()] == [each.shape for each in look.parameters()]
    assert 10 == sum(isinstance(each, nn.Conv2d) for each in look)
    assert not any(each.requires_grad for each in look.parameters())


def test_loss_is_the_models_own():
    """The loss is the second output, over the scale."""
    call = SlowMotion().call(Ask(Mode.TRAINING, 1, seed=0, size=(3, 32, 32), loss_scale=4))

    assert 0.75 == pytest.approx(call.loss((torch.zeros(1), torch.tensor(3.0))).item())

"""MoCo: two encoders, one of which follows the other, and a queue."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

from harness import config
from suites.registry import LoadError
from suites.spec import Mode, Preset
from suites.torchbench import build
from tests.suites import parity

SPEC = next(spec for spec in config.suite("torchbench").models if spec.name == "moco")
SMALL = SPEC.at(Preset.SMALL)


@pytest.fixture
def workload():
    return build.build(SMALL, Mode.TRAINING, 2, seed=7)


def test_computes_what_the_original_did():
    """With the same weights and queue, logits and labels are the recorded ones of the original."""
    network = parity.filled(build.network(SPEC))
    network.queue.copy_(normalize(parity.wave(128, 32000), dim=0))
    queries = parity.wave(2, 3, 224, 224)

    with torch.no_grad():
        parity.assert_computes("moco", network(queries, 0.5 * queries))


def test_half_of_it_is_trained():
    """The key encoder takes no gradient, and starts as the query encoder."""
    network = build.network(SMALL)
    queries, keys = network.query_encoder.state_dict(), network.key_encoder.state_dict()

    assert not any(each.requires_grad for each in network.key_encoder.parameters())
    assert all(each.requires_grad for each in network.query_encoder.parameters())
    assert all(torch.equal(value, keys[name]) for name, value in queries.items())


def test_key_encoder_follows(workload):
    """Each call moves the key encoder a thousandth of the way to the query encoder."""
    network = workload.module
    query, key = network.query_encoder.fc.weight, network.key_encoder.fc.weight
    with torch.no_grad():
        query.add_(1)
        wanted = 0.999 * key + 0.001 * query
        network(*workload.args)

    torch.testing.assert_close(key.detach(), wanted)


def test_queue_goes_round(workload):
    """Each call puts its keys, of length one, in place of the oldest, from the start again after the last."""
    network = workload.module.eval()
    network.place.fill_(62)
    before = network.queue.clone()

    with torch.no_grad():
        network(*workload.args)

    changed = (network.queue != before).any(0).nonzero().flatten()
    assert [62, 63] == changed.tolist()
    assert [0] == network.place.tolist()
    torch.testing.assert_close(network.queue[:, 62:].norm(dim=0), torch.ones(2))


def test_own_view_is_told_from_the_queue(workload):
    """The first logit is that of the other view; the loss is the cross-entropy of the first against all others."""
    logits, labels = workload.module.train()(*workload.args)
    loss = workload.loss((logits, labels))
    loss.backward()

    assert (2, 65) == logits.shape
    assert [0, 0] == labels.tolist()
    torch.testing.assert_close(loss, cross_entropy(logits, labels))
    gradients = [each.grad for each in workload.module.parameters() if each.requires_grad]
    assert all(each is not None and each.any() for each in gradients)


def test_order_of_the_batch_does_not_show(workload):
    """Keys are shuffled, and put back beside their queries: in eval mode another shuffle changes rounding alone."""
    network = workload.module.eval()
    state = {name: value.clone() for name, value in network.state_dict().items()}
    logits = []
    for seed in range(4):
        network.load_state_dict(state)
        with torch.no_grad(), torch.random.fork_rng():
            torch.manual_seed(seed)
            logits.append(network(*workload.args)[0])

    for other in logits[1:]:
        torch.testing.assert_close(logits[0], other, rtol=1e-4, atol=1e-4)


def test_batch_that_the_queue_cannot_take():
    """A batch size that does not divide the queue is refused."""
    with pytest.raises(LoadError, match="queue of 64 keys takes whole batches, and 3 is no divisor"):
        build.build(SMALL, Mode.TRAINING, 3, seed=7)

"""Text into mel frames, one frame after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from suites import inputs
from suites.spec import Attention
from suites.torchbench.recipe import Ask, Call, Recipe

LENGTH = 785
"""Frames, of an entry that gives none."""

SILENCE = 1e3
"""The logit of the gate (is this the end?) after the end."""

Batch = tuple[Tensor, Tensor, Tensor, int, Tensor]
"""Text `(batch, text_length)`, its lengths `(batch,)`, mels `(batch, mels, length)`, longest text, lengths of mels."""

State = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]
"""Hidden and cell state of the attending cell, of the decoding cell, attention, its sum so far, context."""


@dataclass(frozen=True)
class Tacotron(Recipe):
    """Shen et al. 2018, Natural TTS synthesis by conditioning WaveNet on mel spectrogram predictions: Tacotron 2.

    Takes one tuple, a `Batch`. Returns a list: mels `(batch, mels, length)`, the same refined, logits of the end
    `(batch, length)` and attention `(batch, length, text_length)`; after the end of a row mels are 0 and logits 1000.
    Each frame is made from the given one before it. Training: the squared error of both mels plus the binary
    cross-entropy of the end, as in the paper, against the given mels.

    As in the original, the decoder is a loop of Python over frames, lengths are read off tensors, masks are written
    through `.data`, and the dropout of the layers before the decoder is on in eval mode too.
    """

    symbols: int = 148
    mels: int = 80
    text_length: int = 170
    width: int = 512
    attention_width: int = 128
    prenet_width: int = 256
    cell_width: int = 1024

    def network(self, attention: Attention) -> nn.Module:
        return _Tacotron(self)

    def call(self, ask: Ask) -> Call:
        length = ask.length or LENGTH
        # A packed sequence wants the longest text first; how long the speech is follows from the text.
        text_lengths = _lengths(ask, self.text_length)
        lengths = (text_lengths * length + self.text_length - 1) // self.text_length
        text = 1 + inputs.tokens(ask.batch_size, self.text_length, self.symbols - 1, ask.seed)
        text = text.where(torch.arange(self.text_length) < text_lengths.unsqueeze(1), 0)
        spoken = torch.arange(length) < lengths.unsqueeze(1)
        mels = inputs.features(ask.batch_size, (self.mels, length), ask.seed) * spoken.unsqueeze(1)
        ended = (torch.arange(length) >= lengths.unsqueeze(1) - 1).float()
        loss = _synthesis(mels, ended, ask.loss_scale)
        return Call(((text, text_lengths, mels, self.text_length, lengths),), loss=loss)


def _lengths(ask: Ask, longest: int) -> Tensor:
    """Return `(batch,)` of lengths from half of the longest on, falling; the first is the longest."""
    generator = inputs.stream(ask.seed, "lengths")
    lengths = torch.randint(max(longest // 2, 1), longest + 1, (ask.batch_size,), generator=generator)
    lengths[0] = longest
    return lengths.sort(descending=True).values


def _synthesis(mels: Tensor, ended: Tensor, scale: float) -> Callable[[list[Tensor]], Tensor]:
    def loss(output: list[Tensor]) -> Tensor:
        nonlocal mels, ended
        rough, refined, end, _ = output
        exact = torch.promote_types(end.dtype, torch.float32)
        if (mels.device, mels.dtype) != (end.device, exact):
            mels, ended = mels.to(end.device, exact), ended.to(end.device, exact)  # once, not in each step
        frames = functional.mse_loss(rough.to(exact), mels) + functional.mse_loss(refined.to(exact), mels)
        return (frames + functional.binary_cross_entropy_with_logits(end.to(exact), ended)) / scale

    return loss


class _Tacotron(nn.Module):
    def __init__(self, sizes: Tacotron) -> None:
        super().__init__()
        self.embedding = nn.Embedding(sizes.symbols, sizes.width)
        nn.init.xavier_uniform_(self.embedding.weight)
        self.encoder = _Encoder(sizes.width)
        self.decoder = _Decoder(sizes)
        self.postnet = _Convolutions([sizes.mels, *[sizes.width] * 4, sizes.mels], torch.tanh, last=False)

    def forward(self, batch: Batch) -> list[Tensor]:
        text, text_lengths, given, _, lengths = batch
        memory = self.encoder(self.embedding(text).transpose(1, 2), text_lengths)
        mels, ends, attention = self.decoder(memory, given, text_lengths)
        refined = mels + self.postnet(mels)
        after = _after(lengths)
        for each in (mels, refined):
            each.data.masked_fill_(after.unsqueeze(1), 0.0)
        ends.data.masked_fill_(after, SILENCE)
        return [mels, refined, ends, attention]


def _after(lengths: Tensor) -> Tensor:
    """Return `(batch, longest)`: True after the end of a row."""
    longest = int(lengths.max().item())
    return torch.arange(longest, device=lengths.device) >= lengths.unsqueeze(1)


class _Convolutions(nn.Module):
    """Convolutions over time, each with a norm, an activation and dropout; the last one without activation or not."""

    def __init__(self, widths: list[int], activation: Callable[[Tensor], Tensor], last: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Conv1d(given, made, 5, padding=2), nn.BatchNorm1d(made))
            for given, made in pairwise(widths)
        )
        self.activation = activation
        self.activated = len(self.layers) if last else len(self.layers) - 1

    def forward(self, states: Tensor) -> Tensor:
        for place, layer in enumerate(self.layers):
            states = layer(states)
            states = self.activation(states) if place < self.activated else states
            states = functional.dropout(states, 0.5, self.training)
        return states


class _Encoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.convolutions = _Convolutions([width] * 4, torch.relu, last=True)
        self.lstm = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)

    def forward(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Map `(batch, width, text_length)` to `(batch, text_length, width)`."""
        states = self.convolutions(states).transpose(1, 2)
        packed = pack_padded_sequence(states, lengths.cpu(), batch_first=True)
        self.lstm.flatten_parameters()
        output, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return output


class _Prenet(nn.Module):
    def __init__(self, mels: int, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(mels, width, bias=False), nn.Linear(width, width, bias=False)])
        self.dropout = 0.5

    def forward(self, frames: Tensor) -> Tensor:
        for layer in self.layers:
            frames = functional.dropout(layer(frames).relu(), self.dropout, training=True)
        return frames


class _LocationAttention(nn.Module):
    """Attention that sees what it attended to before (Chorowski et al. 2015)."""

    def __init__(self, queries: int, memory: int, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(queries, width, bias=False)
        self.memory = nn.Linear(memory, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)
        self.places = nn.Conv1d(2, 32, 31, padding=15, bias=False)
        self.location = nn.Linear(32, width, bias=False)

    def forward(
        self, query: Tensor, memory: Tensor, keys: Tensor, before: Tensor, hidden: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the context `(batch, width)` and the attention `(batch, text_length)`; `keys` is the projected memory,
        `before` `(batch, 2, text_length)`: the attention before and the sum of all so far."""
        location = self.location(self.places(before).transpose(1, 2))
        scores = self.score(torch.tanh(self.query(query).unsqueeze(1) + location + keys)).squeeze(2)
        attention = scores.masked_fill(hidden, -torch.inf).softmax(1)
        return torch.bmm(attention.unsqueeze(1), memory).squeeze(1), attention


class _Decoder(nn.Module):
    def __init__(self, sizes: Tacotron) -> None:
        super().__init__()
        self.prenet = _Prenet(sizes.mels, sizes.prenet_width)
        self.attending = nn.LSTMCell(sizes.prenet_width + sizes.width, sizes.cell_width)
        self.attention = _LocationAttention(sizes.cell_width, sizes.width, sizes.attention_width)
        self.decoding = nn.LSTMCell(sizes.cell_width + sizes.width, sizes.cell_width)
        self.frame = nn.Linear(sizes.cell_width + sizes.width, sizes.mels)
        self.end = nn.Linear(sizes.cell_width + sizes.width, 1)

    def forward(self, memory: Tensor, given: Tensor, text_lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        silence = given.new_zeros(1, given.shape[0], given.shape[1])
        frames = self.prenet(torch.cat((silence, given.permute(2, 0, 1))))
        keys, hidden = self.attention.memory(memory), _after(text_lengths)
        state = self._start(memory)
        mels, ends, attention = [], [], []
        for place in range(len(frames) - 1):
            mel, end, state = self._step(frames[place], memory, keys, hidden, state)
            mels.append(mel)
            ends.append(end.squeeze(1))
            attention.append(state[4])
        return torch.stack(mels, 1).transpose(1, 2), torch.stack(ends, 1), torch.stack(attention, 1)

    def _start(self, memory: Tensor) -> State:
        batch, length, width = memory.shape
        zeros = [memory.new_zeros(batch, self.attending.hidden_size) for _ in range(4)]
        attention, total, context = (memory.new_zeros(batch, size) for size in (length, length, width))
        return zeros[0], zeros[1], zeros[2], zeros[3], attention, total, context

    def _step(
        self, frame: Tensor, memory: Tensor, keys: Tensor, hidden: Tensor, state: State
    ) -> tuple[Tensor, Tensor, State]:
        """Return a frame `(batch, mels)`, the logit of the end `(batch, 1)` and the state after it."""
        query, query_cell, states, cell, attention, total, context = state
        query, query_cell = self.attending(torch.cat((frame, context), 1), (query, query_cell))
        query = functional.dropout(query, 0.1, self.training)
        context, attention = self.attention(query, memory, keys, torch.stack((attention, total), 1), hidden)
        total = total + attention
        states, cell = self.decoding(torch.cat((query, context), 1), (states, cell))
        states = functional.dropout(states, 0.1, self.training)
        found = torch.cat((states, context), 1)
        return self.frame(found), self.end(found), (query, query_cell, states, cell, attention, total, context)

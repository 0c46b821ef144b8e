"""Networks over text: those of transformers by configuration, and BERT over words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor, nn

from suites import huggingface, inputs, losses
from suites.registry import LoadError
from suites.spec import Attention
from suites.torchbench.recipe import Ask, Call, Recipe


@dataclass(frozen=True)
class Transformers(Recipe):
    """A network of transformers: tokens `(batch, length)` to an output with logits `(batch, length, vocabulary)`.

    One with a decoder gets other tokens for that, as many. The loss is the cross-entropy of the logits against random
    tokens; upstream took the mean of the logits.

    Args:
        name: of the class.
        config: values of its configuration, in place of the library's defaults.
    """

    name: str
    config: Mapping[str, Any] = field(default_factory=dict)

    def network(self, attention: Attention) -> nn.Module:
        return huggingface.of_configuration(self.name, self.config, attention)

    def call(self, ask: Ask) -> Call:
        config = huggingface.configuration(self.name, self.config)
        names = ["input_ids", "decoder_input_ids", "labels"]
        given, for_decoder, labels = (_tokens(ask, config.vocab_size, name) for name in names)
        arguments = {"input_ids": given}
        if config.is_encoder_decoder:
            arguments["decoder_input_ids"] = for_decoder
        return Call((), arguments, losses.of_tokens(labels, ask.loss_scale))


@dataclass(frozen=True)
class WordBert(Recipe):
    """Finds the span that answers a question: BERT (Devlin et al. 2019, arXiv:1810.04805) over words.

    Words `(batch, length)`, each of which stands for pieces, to scores `(batch, length)` of where the answer begins and
    ends, by name. In training now and then a word is replaced by the unknown one. The loss is the mean cross-entropy of
    both ends against random places, as such networks are trained.

    Args:
        words: in the vocabulary; the first two are padding and the unknown word.
        config: of BERT over pieces, in place of the library's defaults.
    """

    words: int = 2869
    config: Mapping[str, Any] = field(default_factory=lambda: {"vocab_size": 21128})

    def network(self, attention: Attention) -> nn.Module:
        bert = huggingface.of_configuration("BertModel", self.config, attention)
        return SpanFinder(bert, WordPieces(self.words, self.config["vocab_size"]))

    def call(self, ask: Ask) -> Call:
        words = UNKNOWN + 1 + _tokens(ask, self.words - UNKNOWN - 1, "words")
        begin, end = (inputs.targets(ask.batch_size, words.shape[1], ask.seed, name) for name in ("begin", "end"))
        of_begin, of_end = (losses.classification(places, 2 * ask.loss_scale) for places in (begin, end))

        def loss(scores: Mapping[str, Tensor]) -> Tensor:
            return of_begin(scores["pred_start"]) + of_end(scores["pred_end"])

        return Call((words,), loss=loss)


PADDING, UNKNOWN = 0, 1
"""Words. The piece of padding has the same number."""

START, END, FIRST_PIECE = 101, 102, 103
"""Pieces that enclose a text, as in BERT's vocabularies, and the first that may be part of a word."""


class WordPieces(nn.Module):
    """Turns words into the pieces that they stand for: a table, that no gradient reaches.

    Each word is a piece of its own, as a Chinese character is; the layer holds for words of several pieces as well.
    """

    pieces: Tensor
    lengths: Tensor

    def __init__(self, words: int, pieces: int, longest: int = 1) -> None:
        super().__init__()
        spread = FIRST_PIECE + torch.arange(words * longest).reshape(words, longest) % (pieces - FIRST_PIECE)
        self.register_buffer("pieces", spread)
        self.register_buffer("lengths", torch.full((words,), longest))

    @torch.no_grad()
    def forward(self, words: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Map words `(batch, length)` to pieces and their mask `(batch, pieces)`, and to each word's first place.

        As many pieces as the longest text has, with one more before it and one after; a count that is read from the
        device's memory, sentence by sentence.
        """
        lengths = self.lengths[words].masked_fill(words == PADDING, 0)
        ends = lengths.cumsum(1)
        totals = ends[:, -1]
        pieces = words.new_full((len(words), int(totals.max().item()) + 2), PADDING)
        mask = torch.zeros_like(pieces)
        places = torch.arange(self.pieces.shape[1], device=words.device)
        for row, (sentence, used) in enumerate(zip(words, lengths, strict=True)):
            found = self.pieces[sentence][places < used[:, None]]
            pieces[row, 1 : len(found) + 1] = found
            mask[row, : len(found) + 2] = 1
        pieces[:, 0] = START
        pieces[torch.arange(len(words), device=words.device), totals + 1] = END
        return pieces, mask, ends - lengths + 1


class SpanFinder(nn.Module):
    """The network of `WordBert`."""

    def __init__(self, bert: nn.Module, pieces: WordPieces) -> None:
        super().__init__()
        self.pieces = pieces
        self.bert = bert
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(cast(Any, bert).config.hidden_size, 2)
        self.word_dropout = 0.01

    def forward(self, words: Tensor) -> dict[str, Tensor]:
        known = words != PADDING
        if self.training:
            dropped = torch.bernoulli(torch.full(words.shape, self.word_dropout, device=words.device)) == 1
            words = words.masked_fill(dropped & known, UNKNOWN)
        pieces, mask, first = self.pieces(words)
        hidden = self.bert(pieces, attention_mask=mask).last_hidden_state
        of_words = hidden.gather(1, first[:, :, None].expand(-1, -1, hidden.shape[-1])) * known[:, :, None]
        begin, end = self.head(self.dropout(of_words)).unbind(-1)
        return {"pred_start": begin, "pred_end": end}


def _tokens(ask: Ask, vocabulary: int, name: str) -> Tensor:
    if ask.length is None:
        raise LoadError(f"A network over text needs a length for {ask.mode} in its entry.")
    return inputs.tokens(ask.batch_size, ask.length, vocabulary, ask.seed, name)

"""Computes while it is imported: what a preloaded module must never do."""

import torch

PRODUCT = torch.ones(512, 512) @ torch.ones(512, 512)

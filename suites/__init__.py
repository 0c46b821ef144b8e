"""Turns a model's description into a `Workload`. Knows nothing of time.

spec, workload              what a suite says and what a builder returns
registry                    suite's module -> builder, imported on demand
toy, timm, huggingface      suites
torchbench                  a suite too, a recipe for each network
checkout                    the models of a person's own TorchBench checkout
user, find                  a person's own file or function, and where a module stands
inputs, losses, fill        seeded arguments, losses, and weights that let a fault reach the output
shorten                     the small preset of deep networks
"""

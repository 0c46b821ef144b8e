"""The 56 networks of TorchBench at the time of the published figures, written anew or taken from libraries.

build.py           an entry -> its recipe -> a workload
recipe.py          what a recipe is
classifiers.py     image classifiers of torchvision and timm
detection.py       Mask R-CNN, EfficientDet, YOLOv3
images.py          networks from images to images, and one from an image to strokes
contrastive.py     MoCo
language.py        transformers by configuration, and a BERT over words
sequences.py       BERT and Transformer written out, a grammar
speech.py          Tacotron 2, Speech-Transformer, a speaker encoder, Demucs
recommendation.py  DLRM and an autoencoder over ratings
control.py         policies over pixels and over states, and a potential of particles
"""

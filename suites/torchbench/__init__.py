"""The 56 networks of TorchBench at the time of the published figures, written anew or taken from libraries.

build.py           an entry -> its recipe -> a workload
recipe.py          what a recipe is
regression.py      the loss of networks that predict numbers
classifiers.py     image classifiers of torchvision and timm
detection.py       Mask R-CNN, EfficientDet
yolo.py            YOLOv3
images.py          what networks over images share
gans.py            a discriminator, and generators from images to images
strokes.py         from an image to the strokes that paint it
unet.py            U-Net
matting.py         what of an image is foreground
interpolation.py   the frame between two frames
contrastive.py     MoCo
language.py        transformers by configuration, and a BERT over words
attention.py       what the transformers written out share
bert.py            BERT's encoder
transformer.py     the Transformer, for translation
speech_transformer.py  the same, from speech to text
grammar.py         a neural grammar
tacotron.py        Tacotron 2
speaker.py         an embedding of a voice
demucs.py          music into its sources
recommendation.py  DLRM and an autoencoder over ratings
control.py         policies over pixels and over states, and a potential of particles
"""

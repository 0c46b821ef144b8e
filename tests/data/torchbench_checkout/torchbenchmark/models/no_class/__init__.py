"""It has no class Model."""

"""The face: one module per verb of the command. Wires the rooms together; holds no logic."""

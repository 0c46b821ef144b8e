raise RuntimeError("the model of this name below models/ is meant")

"""Records to and from the files of others; inside, only our record exists.

In:   `detect` knows by looking what a file is and reads it with that format's module into `facts`: what each row says,
      in our words and units. `join` makes journals of them: a `Run` with its source, its plan and its records.
Out:  `pytorch_write`, `oss_write` and `flat` turn records into text. Pure functions.

`names` reads what a file's name says, `words` what a status word means, `text` lines and numbers. No torch.
"""

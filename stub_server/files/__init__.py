"""Files: a sandbox's state and its steps as lines of JSON, and the files that contain them: exports and recordings.

Imports floor 5 and below: the engine, `data/` and the laws of `audit`. Begin with `state.py`, then `lines.py`.
`package.py` packs lines into a file. What is read passes `fitting.py`, which converts it to the served contract, and
`admitting.py`, which makes the sandbox. `exports.py` has the two kinds of files.
"""

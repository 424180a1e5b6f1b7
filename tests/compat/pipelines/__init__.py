"""Input pipelines as they are published for TensorFlow.

Each module has `build(tf, folder)`: a dict of datasets, by name. It is called
with TensorFlow, or with `penstock.compat.tf`, and must not know which. What is
random says how it is compared, in `COMPARE`: see `comparing.py`.
"""

"""The only home of onnxruntime: which model, on which device, in which session.

registry.py reads models/manifest.toml and checks files; providers.py chooses the device;
session.py makes each session once and hands it out as a small typed `Network`.
"""

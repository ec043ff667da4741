"""The only home of onnxruntime: which model, on which device, in which session.

registry.py reads models/manifest.toml and checks files (installed, install, pull, recognise: what
people bring); providers.py chooses the device, libraries.py finds its libraries, options.py writes
what it is told; environment.py makes a session, session.py each one once, for all jobs, and hands
it out as a `Network` (network.py): checked (guard), stacked (batch), bound to the card's memory
(binding), in smaller numbers (precision).
"""

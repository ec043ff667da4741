"""What `test:` and `demo:` show and sound like; `livefuse/ingest/synthetic.py` hands it over.

test:  bars.py, with a hum           demo:  talking_head.py (face_phases.py), with a voice
both:  drawing.py burns in the counter and the flash, voice.py makes the sound and its AAC,
speech.py says when the head speaks, so that mouth and voice agree
"""

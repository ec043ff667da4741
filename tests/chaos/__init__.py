"""A livefuse between real servers while all of it is stopped, killed and broken at random.

plan.py      a seed -> which fault when; pure
peers.py     the camera (RTSP, locked to the wall clock) and the servers that take the stream
camera.py    the camera's own process, under the system's Python
victim.py    livefuse's own main with seams for faults inside it
control.py   commands to the victim, what it says of itself, its processes
faults.py    what each fault does
run.py       one run from start to end
judge.py     what the far end got: times, counter, sound
bare.py      whether a face is seen in it
sheet.py     pictures around each fault, and curves
quiet.py     no faults: memory, threads, descriptors, latency over time
"""

"""livefuse: a live stream in, a filter on the faces in it, and on it goes, with its sound.

The path of a frame, which is also the order of the folders:

    ingest/     packets -> frames in a pool of our own
    ring.py     the newest two wait; every drop is counted with a reason
    pipeline/   frame + token -> the same frame, its faces covered; pure numpy and OpenCV
    publish/    frames -> one encode -> packets -> rtmp, http-flv, http-ts, file
    job.py      holds these four together for one stream; control/ never touches a pixel
"""

__version__ = "0.1.0"

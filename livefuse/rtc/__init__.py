"""WebRTC: peers over UDP, without HTTP and without codecs of its own. The only home of aiortc.

The path of a packet through the files; ingest/whip.py and publish/whep.py stand at its two ends:

    sdp.py              offers as texts: what is asked; answers.py: what we change in answers;
                        fragment.py: bodies of PATCH
    session.py          what HTTP holds of a peer: an id, an answer, patch, close; from any thread;
                        guest.py: whose it is
    peer.py             one connection: offer -> answer, candidates, its end; restart.py: another
                        path for it while it goes on
    loop.py             the one event loop on which all peers of this process live
    jitter.py           RTP packets -> whole pictures, at once; what to ask for again
    bandwidth.py        how fast a publisher may send
    sync.py             sound and pictures of one sender on one line
    sending.py          coded units -> RTP of one viewer; payload.py cuts them once for all viewers
    patches.py          what aiortc 1.16 does wrong, and only that; standins.py: what it puts in
                        the place of aiortc's parts

Importing this package loads nothing; aiortc (half a second) comes with the first offer.
"""

"""The programs that people have at the other end, tried by hand: OBS Studio, Firefox.

    python -m tests.peers.obs          a Media Source watches livefuse; OBS streams to livefuse
    python -m tests.peers.firefox      the page in Firefox: a camera goes out and comes back

Each runs the real program without a screen, on loopback, in a home folder of its own, says what it
saw, leaves pictures in `out/peers` and ends with 1 when something was not as it should be. They
take a minute and want what Debian has: obs-studio obs-plugins xvfb, firefox-esr. Not part of
scripts/test.
"""

"""The invisible mark: a faint fixed noise in the luma that carries the job's number.

Additive spread spectrum (Cox, Kilian, Leighton, Shamoon, IEEE Trans. Image Processing 6(12), 1997)
in a tile that repeats over the picture, the number in cyclic shifts of noise patterns against a
reference, found by symmetrical phase-only matched filtering of the folded picture: JAWS (Kalker,
Depovere, Haitsma, Maes, Proc. SPIE 3657, 1999). It survives encoding again, scaling and cropping,
which the record in the stream does not. It says where honest copies came from; it is no defence
against somebody who averages many pictures of one job and subtracts what they share.

    pattern.py   a key and a number -> the tile; its code and checksum
    embed.py     the tile into a frame, stronger where the picture is busy
    fold.py      a picture at one scale -> the folded tile, whitened
    match.py     the folded tile -> the most likely word of the code
    detect.py    all scales and sides -> the number
    reader.py    pictures in time -> which numbers were seen when
"""

"""Never bare, tried at random: a whole job in virtual time, everything around it going wrong.

`python -m tests.fuzz --frames 20000 --seed 1`. Each run has one seed, which decides all of it:

    scene.py     people before a wall; where each face is, and how it looks, is known to the pixel
    plan.py      what is filmed, what is asked for, and what goes wrong when
    faults.py    the seams at which it goes wrong: steps, the detector, the mesh, what work costs
    rig.py       the real stages, pipeline, governor and encoder, driven by a camera and a hand
    likeness.py  how much of a face's own fine structure is left where the face is
    promise.py   which faces a frame's token promises to hide
    judge.py     every picture that reaches the encoder, judged
    sheet.py     what was shown beside what was filmed
"""

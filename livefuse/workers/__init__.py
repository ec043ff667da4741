"""Where jobs run: local.py is this process, process.py one that the daemon starts.

face_desk    enrolled faces, with eyes to look at pictures      face_reader   those eyes
live_reader  what a live match asks of a frame                  fence         who may still publish
"""

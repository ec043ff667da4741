"""Commands, HTTP and the panel: what a person says and sees. Never touches a pixel.

cli.py -> commands/run.py, commands/look.py -> requests.py (checked) -> session.py (one run).
http.py serves streams, status and metrics; panel.py shows figures; failure.py ends in one line.
"""

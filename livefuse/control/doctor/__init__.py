"""`livefuse doctor`: examine.py runs the checks; each other module is about one kind of them."""

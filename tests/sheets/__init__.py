"""Contact sheets: what the effects look like, drawn so that people can look at them."""

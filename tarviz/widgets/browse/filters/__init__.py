"""What narrows the rows of the browser down, as it is drawn: facets, and the completion of conditions."""

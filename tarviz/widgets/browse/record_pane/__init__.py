"""What the pane of one record shows: the answers to its requests, cards, header rows, the dump of a member."""

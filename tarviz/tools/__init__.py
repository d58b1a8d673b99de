"""What the tar tools share: field lists, sort table, plans of creation, commands run over records."""

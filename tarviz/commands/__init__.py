"""One file per verb; its name is the verb's name in the shell (`tarviz VERB`), in magics (`%tarviz VERB`) and in Python (`tarviz.VERB`).

A file holds

- a docstring whose first sentence is the verb's line in `tarviz --help`;
- `def <verb>(…) -> Result`, the Python door: takes values, returns a result, writes nothing to the terminal;
- a result class (see `cli/verb_base.py`, `Result`): `__str__`, `_repr_mimebundle_`, `to_dict`, `exit_code`;
- `command`, a click command made with `verb_base.verb(…)` and its options, which ends in `verb_base.emit(result, json=…)`.
"""

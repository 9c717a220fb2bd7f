"""Judging model files: every finding in one pass, each with a rule, a severity, a place and what to do about it.

    findings = validate_files(["model.pb"], Options())

| module | what it does |
|---|---|
| finding | Finding, Severity |
| registry | rules and the families that find them: tables, filled by the modules in `rules` |
| rules/* | one family of rules each |
| subject | one MetaGraph under examination |
| loose | graphs as far as they can be built, where TensorFlow's importer would give up |
| engine | files and folders in, findings out |
| config | graphmill.yaml; baselines of accepted findings |
| reports/* | text, json, sarif, junit, github |
"""

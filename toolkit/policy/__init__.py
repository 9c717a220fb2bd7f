"""What a model may touch outside of the process that runs it.

| module | what it does |
|---|---|
| outside | the table: every op that can reach outside, by class, and where it says which path |
| rules | Policy: what is allowed; paths as they really are |
| access | the policy of one session; the one door through which kernels get at files |
| linkless | opening and replacing files where links may have been put since they were judged |
| model_files | the variables and assets of a SavedModel, which may be links |
| check | a graph, its functions included, against a policy, before anything of it runs |
"""

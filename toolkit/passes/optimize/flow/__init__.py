"""Functions, branches and loops: put in place, lowered, raised, hoisted."""

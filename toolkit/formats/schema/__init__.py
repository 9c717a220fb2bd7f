"""What a YAML document may say: kinds of values, each of which checks a value and describes itself as JSON Schema.

A document is described once, as a tree of kinds. `Kind.check` walks a document along with it and notes every mistake,
with file, line and column; `json_schema` writes the same tree as JSON Schema (draft 2020-12) for editors. That two
names fit each other, or two sizes, is beyond a schema: whoever reads the document says so.

| kind | takes |
|---|---|
| Anything | what nobody checks here |
| Boolean, Integer, Number, Text | one value, with bounds or choices |
| DTypeName, DeviceName | text that names one |
| ListOf, OneOrMore, MapOf | a list; a value or a list of them; a mapping whose keys are free |
| Record | a mapping with known keys |
| OneOf | what one of several kinds takes, told by the value's form |
| ByTag | a record, which one by the text under a key: {type: adam, ...} |
| ByKey | a record, which one by the key that is there: {layer: ...} or {op: ...} |
| Named | a kind that has a name, which JSON Schema refers to |
| Lazy | a kind that is named before it exists, for trees that contain themselves |
"""

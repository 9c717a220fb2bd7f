"""Files that people write, as JSON and YAML: clusters, costs, rules, settings; mistakes are pointed at."""

"""The segment compiler: a program for known shapes becomes one generated function over prepared primitives.

program -> lift (ir) -> fold, patterns -> lower -> fuse -> memory -> emit -> Plan
"""

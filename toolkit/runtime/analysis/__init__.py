"""Runs that look at models: two compared, one verified, ranges measured."""

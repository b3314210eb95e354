"""Benchmarks against MuJoCo: cases as data, one runner, every result checked before its time counts."""

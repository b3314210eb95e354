"""Faults drawn by a seed and planted one at a time in a copy of the project: which of them do the tests notice?"""

"""Contacts with friction, limits, dry friction, equalities: solved by Newton and differentiated implicitly."""

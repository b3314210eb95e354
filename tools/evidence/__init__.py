"""Measurements behind docs/gradients.md: each writes its data as JSON, its table as Markdown, its picture as PNG."""

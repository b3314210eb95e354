"""What there is to draw of a scene or a stage, for the ray caster and for pages."""

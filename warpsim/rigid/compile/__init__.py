"""From a scene to a model, and from authored parameters to physical ones, with derivatives."""

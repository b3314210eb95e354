"""What a step reads and writes: state, controls, the intermediates of one step, scratch."""

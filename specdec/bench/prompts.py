"""What the measurements continue. Written for this project, so that no model here has seen them."""

STORIES = (
    "Once upon a time, there was a small robot who was afraid of the rain.",
    "One morning, Mia found a blue door in the garden.",
    "The old baker had a secret.",
    'Sam and his sister went up the hill to fly a kite. "Look," said Sam,',
    "There was a little snail who wanted to win a race.",
    "It was very cold outside, and the two kittens were hungry.",
    "Grandma gave Ben a box and told him not to open it.",
    "Far away, on a tiny island, lived a lonely dragon.",
    "Lucy could not sleep because the moon was too bright.",
    "The big truck was stuck in the mud, and nobody could help.",
)

"""What the measurements continue, by kind. Written for this project, so that no model here has seen them."""

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
_CHATS = (
    "Why do leaves change their colour in autumn?",
    "I have flour, eggs and milk at home. What could I cook tonight?",
    "My neighbour plays the drums at midnight. How do I ask her to stop?",
    "Explain to a child what a bank does.",
    "Is it better to learn the piano or the guitar first?",
)
_CODES = (
    "Write a Python function that counts the vowels in a string.",
    "Write a Python class for a stack with push, pop and peek.",
    "Write a Python function that reads a CSV file and returns the sum of its second column.",
    "Write a JavaScript function that reverses the words of a sentence.",
    "Write a Python loop that prints the multiplication table up to ten.",
)
_LISTS = (
    "List ten things to take along on a walk in the mountains, one on each line.",
    "List the months of the year with the number of their days.",
    "List eight animals that live in a forest, each with what it eats.",
    "List the planets of the solar system in order, with one word about each.",
    "Give me a shopping list for a birthday party of twelve children.",
)
_TEXTS = (
    "The lighthouse on Gull Rock was built in 1871 by a crew of nineteen masons, who lived in tents on the rock for "
    "two summers. Its lamp burned whale oil at first, then paraffin, and has been electric since 1934. The last "
    "keeper, Anna Brandt, left the lighthouse in 1988, when a computer on the mainland took over the lamp. Today the "
    "lighthouse on Gull Rock is a museum, and the lamp still burns every night.",
    "The town library will close for repairs from the first of March to the end of May. Books can be returned through "
    "the box beside the door at any time. Readers who need a quiet place may use the reading room of the school, which "
    "stays open until eight in the evening. When the town library opens again in June, it will have a lift, a new "
    "children's corner and longer opening hours on Saturdays.",
    "Bees tell each other where flowers are by dancing. A bee that has found good flowers runs in a straight line on "
    "the comb, shaking her body, then circles back and runs the line again. The angle of the line shows the direction "
    "of the flowers against the sun, and the length of the run shows how far away the flowers are. Other bees follow "
    "the dance in the dark, by touch, and then fly to the flowers.",
    "The night train from the coast to the capital was stopped for six hours by snow. The driver had seen that a tree "
    "lay across the line and braked in time. The ninety passengers were given blankets and soup by the people of a "
    "nearby village. At four in the morning a plough cleared the line, and the night train reached the capital at "
    "nine. Nobody was hurt.",
    "The company makes bicycles for people who carry things: bakers, gardeners and parents of twins. Each bicycle is "
    "welded by hand and carries up to two hundred kilograms. The company was founded by two sisters, who began in "
    "their garage with one welding machine. Last year the company sold four hundred bicycles, twice as many as the "
    "year before, and the two sisters moved it into an old dairy.",
)
PROMPTS = {
    "story": STORIES,
    "chat": _CHATS,
    "code": _CODES,
    "list": _LISTS,
    "summary": tuple(f"Summarise this text, keeping its own words where you can.\n\n{text}" for text in _TEXTS),
}


def endless(seed: int) -> str:
    """Stories in a row, beginning with another one for each seed: a text to cut prompts of any length from."""
    first = seed % len(STORIES)
    return " ".join((STORIES[first:] + STORIES[:first]) * 12)

"""Conversations of two TCP stacks, simulated packet by packet, so that each wait's reason is known.

`sim`: virtual time, links, taps. `stack`: one end of a connection and its application; its halves are `sender` and `receiver`,
what they share `end` and `segment`. `wire`: packets as bytes. `truth`: from what each segment waited for to the label of one
tap. Written apart from the program's own model, after
the RFCs: it has the habits of stacks that the model lacks, and neither can hide the other's mistakes.
"""

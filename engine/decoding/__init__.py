"""From logits to a reply: sampling, drafting, verification, stopping, and the records that tell about it."""

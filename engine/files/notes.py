"""Sentences about a checkpoint that are no faults."""

NO_MTP = "The checkpoint has no MTP layer: a sidecar can provide one, otherwise only n-gram drafts are possible."
ANNOUNCED_MTP = "The settings of the checkpoint announce an MTP layer, but its tensors are not there. "

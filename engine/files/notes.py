"""Sentences about a checkpoint that are no faults."""

NO_MTP = "The checkpoint has no MTP layer: a sidecar can provide one, otherwise only n-gram drafts are possible."
ANNOUNCED_MTP = "The settings of the checkpoint announce an MTP layer, but its tensors are not there. "
MTP_ALONE = "holds an MTP layer alone: choose a model, and this file as its sidecar."
OTHER_VERSION = "choose a bf16, a block-wise FP8 or a GGUF version"

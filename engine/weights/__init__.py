"""The weights: units, what stays in memory under a budget, and the reading of everything else from disk."""

"""Drafters: what guesses the tokens to come."""

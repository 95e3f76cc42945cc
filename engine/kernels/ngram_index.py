"""Where the last n tokens occurred before."""

from __future__ import annotations


class NgramIndex:
    def __init__(self, max_ngram=5):
        self.max_ngram, self.tokens = max_ngram, []

    def __len__(self):
        return len(self.tokens)

    def append(self, token):
        self.tokens.append(token)

    def extend(self, tokens):
        self.tokens.extend(tokens)

    def truncate(self, length):
        del self.tokens[length:]

    def following(self, position, count):
        return self.tokens[position : position + count]

    def longest_match(self):
        for n in range(min(self.max_ngram, len(self.tokens) - 1), 1, -1):
            suffix = self.tokens[-n:]
            for start in range(len(self.tokens) - n - 1, -1, -1):
                if self.tokens[start : start + n] == suffix:
                    return start + n, n
        return None

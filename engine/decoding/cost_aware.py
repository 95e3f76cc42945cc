class CostAwareLength:
    def __init__(self, tokens):
        self.t = tokens

    def choose(self, phase):
        return self.t

    def observe(self, outcome):
        pass

"""Prints after which optimizers the steps of programs end. "." is a step of the program, "!" its end at --until-step."""

import os
import types

import sitecustomize


class Optimizer:
    pass


class SGD(Optimizer):
    def step(self):
        pass

    step.hooked = True


class Wrapper(Optimizer):
    def step(self):
        pass


torch = types.SimpleNamespace(
    cuda=types.SimpleNamespace(_lazy_call=lambda _: None), optim=types.SimpleNamespace(Optimizer=Optimizer)
)


def run(program, until="", also=()):
    os.environ["VRAMYARD_STEPS"] = until
    optimizers = {name: SGD() for name in sorted(set(program + "".join(also)))}
    steps, text = sitecustomize._Steps(torch), ""
    for name in program:
        before = steps.steps
        try:
            steps.stepped(optimizers[name])
        except SystemExit:
            print(text + name + "!")
            return
        text += name + "." * (steps.steps - before)
    print(text)


wrapper = Wrapper()
run("AAA")
run("ABABAB")
run("ABABAB", until="2")
run("DDDGDDDG")
run("DDDGDDDG", until="1")
run("AAA", also="B")
run("ABABCCC")

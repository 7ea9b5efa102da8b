import base64
import json
import random

from conftest import FANOUT, GROUP, OTHER, read

from fanfold.compact import estimate, messages


def test_what_lies_together_is_a_range():
    (message,) = messages({GROUP: dict.fromkeys([*range(100, 7_168), 3], "items")}, 10_000)
    assert json.loads(message.body()) == {"items": [f"{GROUP}:3", f"{GROUP}:100-7167"]}


def test_what_is_scattered_is_a_mask():
    (message,) = messages({GROUP: dict.fromkeys(range(0, 100, 2), "failed")}, 10_000)
    mask = base64.b64encode(bytes([0b0101_0101] * 12 + [0b0000_0101])).decode()
    assert json.loads(message.body()) == {"failed": [{"group": GROUP, "mask": mask}]}


def test_nothing_is_no_message():
    assert messages({}, 10_000) == []


def test_any_acks_are_said_once_each_in_messages_below_the_limit():
    seeded = random.Random(1)
    for _ in range(40):
        acks = {}
        for number in range(seeded.randint(1, 30)):
            items = seeded.choice([1, 2, 20, 1_000, 7_168])
            share = seeded.choice([0.01, 0.5, 0.99, 1.0])
            chosen = [index for index in range(items) if seeded.random() < share] or [items - 1]
            group = f"{FANOUT}:01890000-0000-7000-8000-{number:012x}"
            acks[group] = {index: seeded.choice(["items", "items", "failed"]) for index in chosen}
        made = messages(acks, 4_096)
        assert read(message.body() for message in made) == {
            f"{group}:{index}": outcome for group, of in acks.items() for index, outcome in of.items()
        }
        for message in made:
            assert len(message.body()) <= message.bytes <= 4_096
        for group, of in acks.items():
            alone = sum(len(message.body()) for message in messages({group: of}, 10**9))
            outcomes = list(of.values())
            assert alone <= 30 + sum(estimate(outcomes.count(outcome)) for outcome in set(outcomes))


def test_each_message_knows_its_acks():
    acks = {GROUP: {1: "items", 2: "failed"}, OTHER: {3: "items"}}
    (message,) = messages(acks, 4_096)
    assert message.acks == [(GROUP, "items", [1]), (GROUP, "failed", [2]), (OTHER, "items", [3])]

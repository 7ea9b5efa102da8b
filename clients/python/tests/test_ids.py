import pytest
from conftest import FANOUT, GROUP

from fanfold import Item, ItemGroup, expand, expand_ranges


def test_groups_are_expanded_in_order():
    one, two = ItemGroup("a", 2), ItemGroup("b", 1)
    assert list(expand("f", [one, two])) == ["f:a:0", "f:a:1", "f:b:0"]
    assert list(expand("f", [])) == []


def test_ranges_are_expanded_in_order():
    texts = [f"{GROUP}:3-5", f"{GROUP}:7167", f"{GROUP}:9-9"]
    assert list(expand_ranges(texts)) == [f"{GROUP}:{index}" for index in (3, 4, 5, 7167, 9)]


def test_an_item_id_is_read():
    item = Item.parse(f"{GROUP}:7167")
    assert (item.group, item.index, str(item)) == (GROUP, 7_167, f"{GROUP}:7167")


@pytest.mark.parametrize(
    "text",
    [
        "",
        FANOUT,
        GROUP,
        f"{GROUP}:",
        f"{GROUP}:7168",
        f"{GROUP}:01",
        f"{GROUP}:+1",
        f"{GROUP}:-1",
        f"{GROUP}:1:2",
        f"{GROUP}:1-2",
        f"{GROUP}:1 ",
        f"{GROUP}:1\n",
        f"{GROUP}:١",
        GROUP.upper() + ":1",
    ],
)
def test_what_is_no_item_id_is_refused(text):
    with pytest.raises(ValueError, match="item id"):
        Item.parse(text)


@pytest.mark.parametrize("text", [f"{GROUP}:5-4", f"{GROUP}:5-7168", f"{GROUP}:5-", f"{GROUP}:1-2-3"])
def test_what_is_no_range_is_refused(text):
    with pytest.raises(ValueError, match="item id"):
        list(expand_ranges([text]))

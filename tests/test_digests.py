"""Digests of code: what changes them and what does not, tried on a small package made for it."""

from __future__ import annotations

import pytest

from lib import digests, parts
from lib.recipes import RECIPES

MODULE = '''"""What it is for."""

from lib import other


def area(radius):
    """The area.

    Args: radius.
    """
    # a comment
    return 3.14 * radius ** 2
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes modules of a package named lib, and gives the digest of one of them."""
    root = tmp_path / "lib"
    monkeypatch.setattr(digests, "PACKAGE", root)

    def forget():
        for cached in vars(digests).values():
            if hasattr(cached, "cache_clear"):
                cached.cache_clear()

    def write(**sources: str) -> str:
        for name, text in {"__init__": "", "other": "LIMIT = 1\n", **sources}.items():
            path = root.joinpath(*name.split("__of__")[::-1]).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        forget()
        return digests.code_digest(["lib.main"])

    forget()
    yield write
    forget()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""What it is for."""\n', ""),
        ('"""What it is for."""', '"""Something else."""'),
        ("    # a comment\n", ""),
        ("The area.", "Another word"),
        ("3.14 * radius ** 2", "(\n        3.14\n        * radius**2\n    )"),
        ("3.14", "3.140"),
        ("\n\n\ndef", "\n\ndef"),
    ],
)
def test_docstrings_comments_and_formatting_are_not_part(package, old, new):
    changed = MODULE.replace(old, new)
    assert changed != MODULE
    assert package(main=MODULE) == package(main=changed)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("3.14", "3.141"),
        ("** 2", "** 2.0"),
        ("radius", "diameter"),
        ("return 3.14", "return -3.14"),
        ("* radius", "+ radius"),
        ("(radius)", "(radius=None)"),
        ("def area", "async def area"),
        ("    return", "    'a string that is not first'\n    return 0\n    return"),
    ],
)
def test_a_constant_a_name_or_an_operator_changes_the_digest(package, old, new):
    changed = MODULE.replace(old, new)
    assert changed != MODULE
    assert package(main=MODULE) != package(main=changed)


ERROR = """
def check(x, known):
    if x not in known:
        raise ValueError(f"unknown {x!r}; there are: {', '.join(known)}") from None
    if x < 0:
        raise OSError(5, "below zero")
    return "kept"
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("unknown {x!r}; there are: ", "no such thing as {x}, but "),
        ("f\"unknown {x!r}; there are: {', '.join(known)}\"", '"there is none"'),
        ("below zero", "negative"),
        ('"below zero"', 'f"{x} is below zero"'),
        ('"below zero"', '"below " "zero"'),
    ],
)
def test_what_an_error_says_is_not_part(package, old, new):
    changed = ERROR.replace(old, new)
    assert changed != ERROR
    assert package(main=ERROR) == package(main=changed)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ValueError(", "TypeError("),
        ("ValueError(", 'vars()["ValueError"]('),
        ("OSError(5, ", "OSError(6, "),
        (" from None", ""),
        ("x < 0", "x <= 0"),
        ("kept", "sent"),
        ('raise OSError(5, "below zero")', 'OSError(5, "below zero")'),
    ],
)
def test_which_error_is_raised_and_when_is_part(package, old, new):
    changed = ERROR.replace(old, new)
    assert changed != ERROR
    assert package(main=ERROR) != package(main=changed)


IMPORTS = [
    "import lib.other",
    "import lib.other as o",
    "from lib import other",
    "from lib.other import LIMIT",
    "from .other import LIMIT",
    "from . import other",
    "def f():\n    from lib import other\n    return other",
    "def f():\n    if f:\n        import lib.other\n",
    "class A:\n    from lib.other import LIMIT",
    "try:\n    from lib.other import LIMIT\nexcept ImportError:\n    pass",
]


@pytest.mark.parametrize("text", IMPORTS)
def test_every_kind_of_import_is_followed(package, text):
    before = package(main=text)
    assert "lib.other" in digests.closure(["lib.main"])
    assert package(main=text, other="LIMIT = 2\n") != before
    assert package(main=text, other="LIMIT = 1  # still\n") == before


def test_a_module_that_is_not_imported_is_not_part(package):
    before = package(main="import math\nimport numpy")
    assert package(main="import math\nimport numpy", other="LIMIT = 99\n") == before
    assert digests.closure(["lib.main"]) == {"lib.main"}


@pytest.mark.parametrize("name", ["recipes", "profiles"])
def test_recipes_and_profiles_are_not_part_and_their_imports_are_not_followed(package, name):
    source = {"main": f"from lib import {name}\nimport lib.{name}"}
    before = package(**source, **{name: "from lib import other\nX = 1"})
    assert digests.closure(["lib.main"]) <= {"lib.main", "lib"}
    assert package(**source, **{name: "X = 2"}) == before


def test_the_digest_of_values_ignores_the_order_of_keys_and_nothing_else():
    assert digests.value_digest({"a": 1, "b": [1, 2]}) == digests.value_digest({"b": [1, 2], "a": 1})
    others = [{"a": 1, "b": [2, 1]}, {"a": 1, "b": [1, 2.5]}, {"a": "1", "b": [1, 2]}, {"a": 1}]
    assert len({digests.value_digest(v) for v in [{"a": 1, "b": [1, 2]}, *others]}) == 5


def test_a_recipes_training_code_covers_its_own_parts_and_no_other_samplers():
    hardnet = digests.closure(["lib.training", *parts.modules(RECIPES["hardnet"])])
    assert hardnet >= {
        "lib.training",
        "lib.models.l2net",
        "lib.losses.hinge",
        "lib.objective",
        "lib.negatives.hardest",
        "lib.positives.pair",
        "lib.distances.euclidean",
        "lib.distances",
        "lib.augmentation",
        "lib.schedules.linear",
        "lib.samplers.random_pair",
        "lib.samplers.candidates",
    }
    absent = {
        "lib.samplers.adasample",
        "lib.samplers.hardpos",
        "lib.pair_weights",
        "lib.schedules.steps",
        "lib.distances.angular",
        "lib.recipes",
        "lib.profiles",
        "lib.data.synthetic",
        "lib.benchmarks.fpr95",
    }
    assert not hardnet & absent
    adasample = digests.closure(["lib.training", *parts.modules(RECIPES["adasample_gen"])])
    assert adasample >= {
        "lib.samplers.adasample",
        "lib.pair_weights.inverse_distance",
        "lib.distances.angular",
    }
    assert "lib.samplers.hardpos" not in adasample

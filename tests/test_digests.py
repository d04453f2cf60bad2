"""Digests of code: what changes them and what does not, on a small package made for this."""

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
    """A function that writes modules of a package named lib and returns one's digest."""
    root = tmp_path / "lib"
    monkeypatch.setattr(digests, "PACKAGE", root)

    def clear_caches():
        for cached in vars(digests).values():
            if hasattr(cached, "cache_clear"):
                cached.cache_clear()

    def write(**sources: str) -> str:
        for name, text in {"__init__": "", "other": "LIMIT = 1\n", **sources}.items():
            path = root.joinpath(*name.split("__of__")[::-1]).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        clear_caches()
        return digests.code_digest(["lib.main"])

    clear_caches()
    yield write
    clear_caches()


ERROR = """
def check(x, known):
    if x not in known:
        raise ValueError(f"unknown {x!r}; there are: {', '.join(known)}") from None
    if x < 0:
        raise OSError(5, "below zero")
    return "kept"
"""
WORDS = [
    (MODULE, '"""What it is for."""\n', ""),
    (MODULE, "    # a comment\n", ""),
    (MODULE, "The area.", "Another word"),
    (MODULE, "3.14 * radius ** 2", "(\n        3.140\n        * radius**2\n    )"),
    (ERROR, "unknown {x!r}; there are: ", "no such thing as {x}, but "),
    (ERROR, "f\"unknown {x!r}; there are: {', '.join(known)}\"", '"there is none"'),
    (ERROR, '"below zero"', 'f"{x} is " "negative"'),
]
BEHAVIOUR = [
    (MODULE, "** 2", "** 2.0"),
    (MODULE, "radius", "diameter"),
    (MODULE, "return 3.14", "return -3.14"),
    (MODULE, "(radius)", "(radius=None)"),
    (MODULE, "    return", "    'a string that is not first'\n    return"),
    (ERROR, "ValueError(", "TypeError("),
    (ERROR, "OSError(5, ", "OSError(6, "),
    (ERROR, " from None", ""),
    (ERROR, "x < 0", "x <= 0"),
    (ERROR, "kept", "sent"),
    (ERROR, 'raise OSError(5, "below zero")', 'OSError(5, "below zero")'),
]


@pytest.mark.parametrize(("source", "old", "new"), WORDS)
def test_docstrings_comments_formatting_and_error_messages_are_ignored(package, source, old, new):
    assert old in source
    assert package(main=source) == package(main=source.replace(old, new))


@pytest.mark.parametrize(("source", "old", "new"), BEHAVIOUR)
def test_constants_names_operators_and_error_types_change_the_digest(package, source, old, new):
    assert old in source
    assert package(main=source) != package(main=source.replace(old, new))


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


def test_a_module_that_is_not_imported_is_ignored(package):
    before = package(main="import math\nimport numpy")
    assert package(main="import math\nimport numpy", other="LIMIT = 99\n") == before
    assert digests.closure(["lib.main"]) == {"lib.main"}


@pytest.mark.parametrize("name", ["recipes", "profiles"])
def test_recipes_and_profiles_are_ignored_and_their_imports_not_followed(package, name):
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
        *(
            "lib.training",
            "lib.models.l2net",
            "lib.losses.hinge",
            "lib.objective",
            "lib.samplers.augmentation",
        ),
        *(
            "lib.losses.negatives.hardest",
            "lib.positives.pair",
            "lib.losses.distances.euclidean",
            "lib.losses.distances",
        ),
        *("lib.schedules.linear", "lib.samplers.random_pair", "lib.samplers.candidates"),
    }
    adasamples = {"lib.samplers.adasample", "lib.losses.pair_weights", "lib.losses.distances.angular"}
    others = {"lib.samplers.hardpos", "lib.recipes", "lib.data.synthetic", "lib.benchmarks.fpr95"}
    assert not hardnet & (adasamples | others)
    adasample = digests.closure(["lib.training", *parts.modules(RECIPES["adasample_gen"])])
    assert adasample >= adasamples
    assert not adasample & others

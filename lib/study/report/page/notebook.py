"""Notebooks and documents as parts of a page: text and outputs without code, equations typeset, links
mended.
"""

import base64
import io
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_PNG, _WEBP = (f"data:image/{kind};base64," for kind in ("png", "webp"))


@dataclass(frozen=True)
class RenderedNotebook:
    """A notebook as the report shows it; `body` is HTML, `anchor` its id on the page."""

    anchor: str
    title: str
    name: str
    body: str


def name_of(path: Path) -> str:
    """A notebook's folder and name, e.g. `adasample/table1`."""
    return "/".join(path.with_suffix("").parts[-2:])


def anchor_of(name: str) -> str:
    """A notebook's id on the page, e.g. `adasample-table1`."""
    return name.replace("/", "-")


def render_notebook(path: Path, beside: Mapping[str, str] | None = None) -> RenderedNotebook:
    """Render an executed notebook's text and outputs, without code, as part of a page.

    Headings go two levels down, since notebooks are sections of parts, and ids get the anchor in front,
    so that they can follow one another. The first heading becomes the title and is taken out of the
    body. Equations become MathML, and PNGs WebPs of the same pixels, a fifth smaller.
    A link to a file that is on the page leads there; of any other relative link only its text is kept,
    with the file's place in the repository. What is printed can be scrolled with a keyboard and bears
    the name of its heading.

    Args:
        path: of the notebook.
        beside: the ids on the page of files that are on it too, by their place in the repository, e.g.
            {"notebooks/adasample/table1.ipynb": "adasample-table1"}.

    Raises:
        ValueError: an equation cannot be typeset.
    """
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    body, _ = _exporter().from_notebook_node(notebook, {"metadata": {"path": str(path.parent)}})
    name = name_of(path)
    title, body = _as_section(body, f"notebooks/{name}.ipynb", anchor_of(name), beside, 2)
    return RenderedNotebook(anchor_of(name), title or path.stem, name, body)


def render_document(path: Path, anchor: str, beside: Mapping[str, str] | None = None) -> tuple[str, str]:
    """The title and the HTML of a Markdown document of the folder docs, its headings one level down.

    Args:
        path: of the document.
        anchor: in front of its ids.
        beside: as for `render_notebook`.

    Raises:
        ValueError: an equation cannot be typeset.
    """
    body = _markdown(str(path.parent), path.read_text(encoding="utf-8"))
    return _as_section(body, f"docs/{path.name}", anchor, beside, 1)


def mathml(latex: str, display: str = "inline") -> str:
    """An equation as MathML, which browsers typeset themselves.

    Args:
        latex: without delimiters.
        display: "inline" or "block".

    Raises:
        ValueError: it is not understood; the message holds the equation.
    """
    from latex2mathml.converter import convert

    try:
        typeset = convert(latex, display=display)
    except Exception as error:  # a class of its own for each mistake, with nothing above them
        raise ValueError(
            f"equation {latex!r} is not understood: {error or type(error).__name__}"
        ) from error
    # What it does not know, it copies.
    if "\\" in typeset:
        raise ValueError(f"equation {latex!r} is not understood: it became {typeset}")
    # HTML needs no namespace. A norm's closing bar, base of an exponent, would be stretched alone.
    typeset = re.sub(r' xmlns="[^"]*"', "", typeset)
    return typeset.replace("<mo>&#x02016;", '<mo stretchy="false">&#x02016;')


@cache
def _exporter() -> object:
    """One for all notebooks, since it compiles its templates."""
    from jinja2 import pass_context
    from jinja2.runtime import Context
    from nbconvert import HTMLExporter

    @pass_context
    def with_mathml(context: Context, source: str) -> str:
        return _markdown(context["resources"]["metadata"]["path"], source)

    exporter = HTMLExporter(
        template_name="basic",
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        embed_images=True,
    )
    exporter.register_filter("markdown2html", with_mathml)
    return exporter


def _markdown(folder: str, source: str) -> str:
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    class WithMathML(IPythonRenderer):
        def block_math(self, body: str) -> str:
            return mathml(body.strip(), "block")

        def inline_math(self, body: str) -> str:
            return mathml(body.strip())

        def latex_environment(self, name: str, body: str) -> str:
            return mathml(rf"\begin{{{name}}}{body}\end{{{name}}}", "block")

    renderer = WithMathML(escape=False, embed_images=True, path=folder)
    return MarkdownWithMath(renderer=renderer).render(source)


def _as_webp(source: str) -> str:
    from PIL import Image

    picture = Image.open(io.BytesIO(base64.b64decode(source.removeprefix(_PNG))))
    picture.convert("RGB").save(content := io.BytesIO(), "webp", lossless=True, quality=25, method=2)
    return _WEBP + base64.b64encode(content.getvalue()).decode()


def _as_section(
    body: str, file: str, anchor: str, beside: Mapping[str, str] | None, down: int
) -> tuple[str, str]:
    """Take the title out of the HTML of a file of the repository, and make the rest fit into a page of
    several, its headings some levels down."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(body, features="html.parser")
    for element in soup.select("script, style, a.anchor-link"):
        element.decompose()
    title = soup.h1.extract().get_text().strip() if soup.h1 is not None else ""
    for picture in soup.select(f'img[src^="{_PNG}"]'):
        picture["src"] = _as_webp(picture["src"])
    for heading in soup.find_all(re.compile("^h[1-6]$")):
        heading.name = f"h{min(6, int(heading.name[1]) + down)}"
    for block in soup.find_all("pre"):
        # Sentences, which wrap, where others are tables, which scroll.
        if block.get_text().lstrip().startswith(("Claim: ", "Reading: ")):
            block["class"] = "sentences"
        else:
            above = block.find_previous(re.compile("^h[1-6]$"))
            label = title if above is None else above.get_text().removesuffix("¶").strip()
            block.attrs |= {"tabindex": "0", "role": "region", "aria-label": label}
    for head in soup.select("thead th"):
        head["scope"] = "col"
    for element in soup.select("[id]"):
        element["id"] = f"{anchor}-{element['id']}"
    anchors = {**(beside or {}), file: anchor}
    for link in soup.select("a[href]"):
        target, _, part = link["href"].partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        place = posixpath.normpath(posixpath.join(posixpath.dirname(file), target)) if target else file
        if place in anchors:
            link["href"] = f"#{anchors[place]}" + (f"-{part}" if part else "")
        else:
            link.insert_after(f" ({place})")
            link.unwrap()
    return title, str(soup)

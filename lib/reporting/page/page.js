// The table of runs, sorted by a click on a column's head and narrowed to rows that hold all words.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const order = new Intl.Collator("en", { numeric: true });
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    const text = (row) => row.cells[place].textContent.trim();
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      // What has nothing in this column comes last either way.
      const compare = (a, b) => !text(a) - !text(b) || (down ? -1 : 1) * order.compare(text(a), text(b));
      body.append(...[...body.rows].sort(compare));
    });
  });
  const search = table.parentElement.previousElementSibling;
  const input = search.querySelector("input"), told = search.querySelector("output");
  search.hidden = false;
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    const left = [...body.rows].filter((row) => !row.hidden).length;
    told.textContent = `${left} of ${body.rows.length}`;
  });
}

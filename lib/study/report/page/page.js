// The table of runs, sorted by a click on a column's head and narrowed to rows that hold all words.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const text = (row, place) => row.cells[place].textContent.trim();
  const order = new Intl.Collator("en", { numeric: true });
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      // What has nothing in this column comes last either way.
      const compare = (a, b) => {
        const [one, other] = [text(a, place), text(b, place)];
        return !one - !other || (down ? -1 : 1) * order.compare(one, other);
      };
      body.append(...[...body.rows].sort(compare));
    });
  });
  const search = table.parentElement.previousElementSibling;
  const input = search.querySelector("input"), told = search.querySelector("output");
  search.hidden = false;
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of body.rows) {
      const whole = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => whole.includes(word));
    }
    const left = [...body.rows].filter((row) => !row.hidden);
    // A column is shown where one of these rows has something in it.
    heads.forEach((head, place) => {
      head.hidden = left.length > 0 && !left.some((row) => text(row, place));
      for (const row of body.rows) row.cells[place].hidden = head.hidden;
    });
    told.textContent = `${left.length} of ${body.rows.length}`;
  });
  // An artefact's link to its records leaves those alone.
  for (const link of document.querySelectorAll("a[data-rows]"))
    link.addEventListener("click", () => {
      input.value = link.dataset.rows;
      input.dispatchEvent(new Event("input"));
    });
}

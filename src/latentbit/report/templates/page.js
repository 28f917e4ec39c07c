// Click a heading to sort its table: numbers by their full value, text by locale; a second click turns it round.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const numeric = [...table.tBodies[0].rows].some((row) => row.cells[column].dataset.value !== undefined);
      const now = head.getAttribute("aria-sort");
      const descending = now ? now === "ascending" : numeric;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const key = (row) => {
        const cell = row.cells[column];
        return numeric ? (cell.dataset.value === undefined ? NaN : Number(cell.dataset.value)) : cell.textContent;
      };
      const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
      rows.sort(([a], [b]) => {
        if (!numeric) return (descending ? -1 : 1) * a.localeCompare(b, undefined, { numeric: true });
        if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
        return (descending ? -1 : 1) * (a - b);
      });
      table.tBodies[0].append(...rows.map(([, row]) => row));
    });
  });
}

// Paper cannot unfold: everything is open while the page is printed.
const folded = [];
addEventListener("beforeprint", () => {
  for (const one of document.querySelectorAll("details:not([open])")) { one.open = true; folded.push(one); }
});
addEventListener("afterprint", () => { for (const one of folded.splice(0)) one.open = false; });

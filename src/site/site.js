// Sorting, filtering, and marking a model wherever it stands. Without it all is there to read.
"use strict";
(() => {
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const value = (cell, kind) => {
    const text = cell ? (cell.innerText || "").trim() : "";
    // "A+" comes before "A", and that before "A-".
    if (kind === "grade") return text && text[0] + ({ "+": 0, "-": 2 }[text[1]] ?? 1);
    if (kind !== "number") return text.toLowerCase();
    const found = text.match(/-?(\d+(\.\d+)?(e[-+]?\d+)?|inf\b)/);
    return found ? Number(found[0].replace("inf", "Infinity")) : NaN;
  };
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  // Rows without a value come last, in either direction.
  const absent = (key) => key === "" || Number.isNaN(key);
  const order = (body, key, down) => {
    const rows = all(":scope > tr", body).map((row, at) => ({ row, at, key: key(row) }));
    rows.sort((a, b) => absent(a.key) - absent(b.key) ||
      compare(a.key, b.key) * (down ? -1 : 1) || a.at - b.at);
    body.append(...rows.map((r) => r.row));
  };

  for (const head of all("th[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    const title = head.firstChild;
    if (!title || title.nodeType !== Node.TEXT_NODE) continue;
    title.replaceWith(button);
    button.append(title);
    button.addEventListener("click", () => {
      const kind = head.dataset.sort;
      const before = head.getAttribute("aria-sort");
      const down = before ? before === "ascending" : kind === "number";
      for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const at = head.cellIndex;
      order(head.closest("table").tBodies[0], (row) => value(row.cells[at], kind), down);
    });
  }

  const form = document.querySelector("form.filters");
  if (form) {
    const chosen = (name) => (form.elements[name] ? form.elements[name].value : "");
    const filter = () => {
      const device = chosen("device"), part = chosen("model").toLowerCase(), names = new Set();
      const box = form.elements.references, left = new Set();
      if (box && !box.checked) for (const row of all("[data-ref]")) left.add(row.dataset.m);
      for (const section of all("section[data-device]"))
        section.hidden = device !== "" && section.dataset.device !== device;
      for (const item of all("[data-m]")) {
        if (!item.dataset.m) continue;
        const hit = item.dataset.m.toLowerCase().includes(part) && !left.has(item.dataset.m);
        if (item instanceof SVGElement) item.style.display = hit ? "" : "none";
        else item.hidden = !hit;
        if (hit && item.closest("section[data-device][hidden]") === null) names.add(item.dataset.m);
      }
      form.querySelector("output").value = `${names.size} model${names.size === 1 ? "" : "s"}`;
    };
    const figure = () => {
      const by = chosen("figure");
      if (!by) return;
      document.body.dataset.figure = by;
      for (const table of all("table.ranking")) {
        for (const head of all("[aria-sort]", table)) head.removeAttribute("aria-sort");
        order(table.tBodies[0], (row) => Number(row.dataset[by]), false);
      }
    };
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", (event) => {
      if (event.target.name === "figure") figure();
      filter();
    });
    form.hidden = false;
    figure();
    filter();
  }

  let marked = null;
  const mark = (event) => {
    const from = event.target.closest ? event.target.closest("[data-m]") : null;
    const name = from ? from.dataset.m : null;
    if (name === marked) return;
    marked = name;
    for (const item of all("[data-m]")) item.classList.toggle("at", name !== null && item.dataset.m === name);
  };
  if (document.querySelector("[data-m]")) {
    document.addEventListener("pointerover", mark);
    document.addEventListener("focusin", mark);
  }
})();

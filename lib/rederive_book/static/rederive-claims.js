// Filters for the dashboard of claims. Without this script the table is complete and plain.
"use strict";

(() => {
  const VERDICTS = ["holds", "amended", "refuted", "open", "untried"];
  let made = 0;

  // The words of the page's language: a translated page hands them over before each table.
  function wordsFor(table) {
    const frame = table.closest(".pst-scrollable-table-container") || table;
    const given = frame.previousElementSibling;
    const words = given?.matches(".rederive-words") ? JSON.parse(given.dataset.words) : {};
    return (text, ...numbers) => (words[text] || text).replace(/\{(\d)\}/g, (_, n) => numbers[n]);
  }

  function select(label, options, say) {
    made += 1;
    const holder = document.createElement("label");
    const field = document.createElement("select");
    field.id = `rederive-filter-${made}`;
    holder.htmlFor = field.id;
    holder.append(say(label), " ", field);
    field.append(new Option(say("all"), ""));
    for (const [value, text] of options) {
      field.append(new Option(text, value));
    }
    return [holder, field];
  }

  function stateOf(row, prefix) {
    const found = [...row.classList].find((name) => name.startsWith(prefix));
    return found ? found.slice(prefix.length) : "";
  }

  function addFilters(table) {
    const say = wordsFor(table);
    const rows = [...table.tBodies[0].rows];
    const bar = document.createElement("div");
    bar.className = "rederive-filters";
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", say("Show claims"));

    const filters = [];
    if (table.classList.contains("rederive-all")) {
      const chapters = new Map();
      for (const row of rows) {
        const cell = row.querySelector(".rederive-cell-chapter");
        chapters.set(stateOf(row, "rederive-in-"), cell.textContent.trim());
      }
      const [holder, field] = select("Chapter", chapters, say);
      bar.append(holder);
      filters.push(["rederive-in-", field]);
    }
    const counts = new Map();
    for (const row of rows) {
      const verdict = stateOf(row, "rederive-is-");
      counts.set(verdict, (counts.get(verdict) || 0) + 1);
    }
    const present = VERDICTS.filter((verdict) => counts.has(verdict));
    const [holder, field] = select(
      "Verdict",
      present.map((verdict) => [verdict, `${say(verdict)} (${counts.get(verdict)})`]),
      say,
    );
    bar.append(holder);
    filters.push(["rederive-is-", field]);

    const shown = document.createElement("output");
    bar.append(shown);

    function update() {
      let count = 0;
      for (const row of rows) {
        const keep = filters.every(
          ([prefix, chosen]) => chosen.value === "" || stateOf(row, prefix) === chosen.value,
        );
        row.hidden = !keep;
        count += keep ? 1 : 0;
      }
      shown.textContent = say("{0} of {1} claims", count, rows.length);
    }

    for (const [, chosen] of filters) {
      chosen.addEventListener("change", update);
    }
    const frame = table.closest(".pst-scrollable-table-container") || table;
    frame.before(bar);
    update();
  }

  function start() {
    document.querySelectorAll("table.rederive-claims").forEach(addFilters);
  }

  if (document.readyState === "loading") {
    document.addEventListener("DOMContentLoaded", start);
  } else {
    start();
  }
})();

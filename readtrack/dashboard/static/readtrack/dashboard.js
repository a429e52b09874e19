// Comfort only: the page works without it. Closes menus and marks, asks for the number of people every 30 seconds while
// the page is looked at, and writes the names of countries.
"use strict";

(() => {
  const language = document.documentElement.lang || undefined;
  const numbers = new Intl.NumberFormat(language, { numberingSystem: "latn" }); // as Django writes them in every language
  const written = (count) => (count == null ? "–" : numbers.format(count));

  const places = [...document.querySelectorAll(".readtrack-now")]; // of the same number
  const renew = async () => {
    if (document.hidden) return;
    let count = null;
    try {
      const { rows, caption } = await (await fetch(places[0].dataset.url)).json();
      count = rows[0][0];
      document.querySelectorAll(".readtrack-now-words").forEach((words) => { words.textContent = caption; }); // "person", "people"
    } catch {
      // Such as of a server that restarts, or of a session that has ended: nobody knows.
    }
    places.forEach((place) => { place.textContent = written(count); });
  };

  // Browsers know the names of countries in every language; the server knows their codes.
  const name = (element) => {
    const code = element.dataset.country;
    try {
      const text = new Intl.DisplayNames(language, { type: "region" }).of(code);
      (element.matches("option") ? element : element.querySelector("strong, a, span")).textContent = text;
    } catch {
      // The code is none of a country, such as "T1" of Tor: it stays.
    }
  };

  const opened = ".readtrack :is(.readtrack-menu, .readtrack-mark)[open]";
  const close = (isLeft) => document.querySelectorAll(opened).forEach((one) => { if (isLeft(one)) one.open = false; });
  const marks = document.querySelector(".readtrack-marks");
  document.addEventListener("click", ({ target }) => close((one) => !one.contains(target)));
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    marks?.classList.add("readtrack-hushed"); // what the pointer has opened
    document.querySelectorAll(opened).forEach((one) => { if (one.contains(document.activeElement)) one.querySelector("summary").focus(); });
    close(() => true);
  });
  marks?.addEventListener("mouseover", () => marks.classList.remove("readtrack-hushed"));

  document.querySelectorAll("[data-country]").forEach(name);
  if (places.length) {
    setInterval(renew, 30_000);
    document.addEventListener("visibilitychange", renew);
  }
})();

// Draws the dashboard's chart again with uPlot, from its values in the page: the values under the pointer beside it, and
// zoom by dragging. The drawing of the server stays for print, and where anything fails. Asks for the number of people
// every 30 seconds while the page is looked at. Writes the names of countries. Closes menus.
"use strict";

(() => {
  const DASH = [6, 5]; // of what is not over yet

  const language = document.documentElement.lang || undefined;
  const numbers = new Intl.NumberFormat(language, { numberingSystem: "latn" }); // as Django writes them in every language
  const written = (count) => (count == null ? "–" : numbers.format(count));

  const style = (element, name) => getComputedStyle(element).getPropertyValue(name).trim();

  const colours = (host, series) => {
    const ink = getComputedStyle(host).color; // of an admin without the variables of Django's own
    const [line, before] = [series, "before"].map((name) => style(host, `--readtrack-${name}`).replace("currentcolor", ink));
    return { line, before, grid: style(host, "--hairline-color") || "#80808066" };
  };

  // The line of what is over, and the one from its last point to the point that is not over yet.
  const divided = (values, isUnfinished) => {
    const last = values.length - 1;
    if (!isUnfinished || values[last] == null) return [values, values.map(() => null)];
    if (!last) return [values, values];
    return [values.map((value, place) => (place < last ? value : null)), values.map((value, place) => (place < last - 1 ? null : value))];
  };

  // A box beside the pointer with the values of the point.
  const tooltip = (data, values, before, when) => {
    const box = document.createElement("div");
    box.className = "readtrack-tooltip";
    const line = (text, tag = "div") => {
      const element = document.createElement(tag);
      element.textContent = text;
      box.append(element);
    };
    return {
      hooks: {
        init: (plot) => plot.over.append(box),
        setCursor: (plot) => {
          const { left, top, idx } = plot.cursor;
          box.hidden = idx == null || left < 0;
          if (box.hidden) return;
          box.replaceChildren();
          line(when(idx), "b");
          line(`${data.labels[0]}: ${written(values[idx])}`);
          if (before.length) line(`${data.labels[1]}: ${written(before[idx])}`);
          const band = data.usual[idx];
          if (band) line(`${data.labels[2]}: ${band.map(written).join(" – ")}`);
          const note = data.rows[idx][data.columns.indexOf("notes")];
          if (note) line(note);
          const isRight = left > plot.over.clientWidth / 2;
          const over = isRight ? left - box.offsetWidth - 12 : left + 12;
          const down = Math.min(Math.max(0, top - box.offsetHeight / 2), plot.over.clientHeight - box.offsetHeight);
          box.style.transform = `translate(${Math.max(0, over)}px, ${down}px)`;
        },
      },
    };
  };

  // Canvas takes no variables, so a change of the scheme draws anew.
  const draw = (host, data, height) => {
    const { line, before: grey, grid } = colours(host, data.series);
    const times = data.rows.map((row) => Date.parse(row[0]) / 1000);
    const values = data.rows.map((row) => row[data.columns.indexOf(data.series)]);
    const before = data.before.length ? times.map((_, place) => data.before[place] ?? null) : [];
    const notes = data.rows.map((row) => row[data.columns.indexOf("notes")]);
    const hasHours = times.length > 1 && times[1] - times[0] < 86_000;
    const formatted = (parts) => new Intl.DateTimeFormat(language, { timeZone: host.dataset.zone, ...parts });
    const hour = { hour: "numeric", minute: "2-digit" };
    const date = { day: "numeric", month: "short" };
    const day = formatted({ ...date, ...(hasHours ? hour : { weekday: "short", year: "numeric" }) });
    const isOfDays = hasHours && times.at(-1) - times[0] > 90_000; // hours of several days
    const dates = formatted(date);
    const hours = formatted(isOfDays ? { weekday: "short", hour: "numeric" } : hour);
    const tick = (splits) => (hasHours && splits[1] - splits[0] < 86_000 ? hours : dates);
    const axis = { stroke: grey, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
    const once = (words) => words.map((word, place) => (word === words[place - 1] ? "" : word)); // of few days there are more lines
    const mark = (plot) => {
      const { left, top, width, height: below } = plot.bbox;
      plot.ctx.fillStyle = grey;
      times.forEach((time, place) => {
        const over = plot.valToPos(time, "x", true);
        if (notes[place] && over >= left && over <= left + width) plot.ctx.fillRect(over, top, devicePixelRatio, below);
      });
    };
    // The two ends of what is usual, with the area between them; the lines have no width.
    const ends = data.usual.length ? [0, 1].map((end) => times.map((_, place) => data.usual[place]?.[end] ?? null)) : [];
    const pale = `color-mix(in srgb, ${grey} 22%, transparent)`;
    const [over, unfinished] = divided(values, data.is_unfinished);
    const points = { show: times.length === 1 };
    const none = { show: false };
    const options = {
      hooks: { draw: [mark] },
      plugins: [tooltip(data, values, before, (place) => day.format(times[place] * 1000))],
      legend: none,
      width: host.clientWidth,
      height,
      cursor: { y: false, points: none },
      scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(4, most)] } },
      tzDate: (time) => uPlot.tzDate(new Date(time * 1000), host.dataset.zone),
      series: [
        {},
        ...ends.map(() => ({ width: 0, points: none })),
        ...(before.length ? [{ stroke: grey, width: 1.5, points }] : []),
        { fill: `color-mix(in srgb, ${line} 14%, transparent)`, width: 0, points: none },
        { stroke: line, width: 3, points },
        { stroke: line, width: 3, dash: DASH, points },
      ],
      bands: ends.length ? [{ series: [2, 1], fill: pale }] : [],
      axes: [
        { ...axis, values: (_, splits) => once(splits.map((time) => tick(splits).format(time * 1000))), space: 80 },
        { ...axis, values: (_, splits) => splits.map((count) => (Number.isInteger(count) ? numbers.format(count) : "")), size: 64 },
      ],
    };
    host.replaceChildren();
    return new uPlot(options, [times, ...ends, ...(before.length ? [before] : []), values, over, unfinished], host);
  };

  const start = (host) => {
    const charts = host.closest(".readtrack-charts");
    try {
      const data = JSON.parse(host.dataset.values);
      // As high as the drawing of the server, so that nothing below moves.
      const height = Math.max(160, Math.floor(charts.getBoundingClientRect().height));
      host.hidden = false;
      let plot = draw(host, data, height);
      charts.classList.add("readtrack-is-drawn");
      const again = () => { plot.destroy(); plot = draw(host, data, height); };
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
      new MutationObserver(again).observe(document.documentElement, { attributeFilter: ["data-theme", "class"] });
      new ResizeObserver(() => plot.setSize({ width: host.clientWidth, height })).observe(charts);
    } catch {
      host.hidden = true; // the drawing of the server is there
    }
  };

  const renew = async (place) => {
    if (document.hidden) return;
    let count = null;
    try {
      count = (await (await fetch(place.dataset.url)).json()).rows[0][0];
    } catch {
      // Such as of a server that restarts, or of a session that has ended: nobody knows.
    }
    place.textContent = written(count);
  };

  // Browsers know the names of countries in every language; the server knows their codes.
  const name = (element) => {
    const code = element.dataset.country;
    try {
      const text = new Intl.DisplayNames(language, { type: "region" }).of(code);
      element.querySelector("strong, a, span").textContent = text;
    } catch {
      // The code is none of a country, such as "T1" of Tor: it stays.
    }
  };

  const menus = document.querySelectorAll(".readtrack-menu");
  const close = (isLeft) => menus.forEach((menu) => { if (isLeft(menu)) menu.open = false; });
  document.addEventListener("click", ({ target }) => close((menu) => !menu.contains(target)));
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    menus.forEach((menu) => { if (menu.open && menu.contains(document.activeElement)) menu.querySelector("summary").focus(); });
    close(() => true);
  });

  document.querySelectorAll("[data-country]").forEach(name);
  document.querySelectorAll(".readtrack-live-chart").forEach(start);
  document.querySelectorAll(".readtrack-now").forEach((place) => {
    setInterval(renew, 30_000, place);
    document.addEventListener("visibilitychange", () => renew(place));
  });
})();

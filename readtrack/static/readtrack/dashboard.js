// Draws the dashboard's chart again with uPlot, from its values in the page: values under the pointer, those of the
// whole period at rest, the period before beside them, and zoom by dragging. The drawing of the server stays for print,
// and where anything fails. Asks for the number of people every 30 seconds while the page is looked at.
"use strict";

(() => {
  const NAMES = ["before", "views", "visitors", "reads"];
  const DASHES = [[2, 4], [], [8, 4], [3, 4]];

  const language = document.documentElement.lang || undefined;
  const numbers = new Intl.NumberFormat(language, { numberingSystem: "latn" }); // as Django writes them in every language
  const written = (count) => (count == null ? "–" : numbers.format(count));

  const style = (element, name) => getComputedStyle(element).getPropertyValue(name).trim();

  const colours = (host) => {
    const ink = getComputedStyle(host).color; // of an admin without the variables of Django's own
    const found = NAMES.map((name) => style(host, `--readtrack-${name}`).replace("currentcolor", ink));
    return { lines: found, text: found[0], grid: style(host, "--hairline-color") || "#80808066" };
  };

  // Canvas takes no variables, so a change of the scheme draws anew.
  const draw = (host, data, height = 280) => {
    const { lines, text, grid } = colours(host);
    const labels = data.labels;
    const times = data.rows.map((row) => Date.parse(row[0]) / 1000);
    const shown = NAMES.filter((name, line) => line || data.totals[1] != null); // there may be no period before
    const columns = shown.map((name) => data.rows.map((row) => row[data.columns.indexOf(name)]));
    const notes = data.rows.map((row) => row[data.columns.indexOf("notes")]);
    const hasHours = times.length > 1 && times[1] - times[0] < 86_000;
    const formatted = (parts) => new Intl.DateTimeFormat(language, { timeZone: host.dataset.zone, ...parts });
    const hour = { hour: "numeric", minute: "2-digit" };
    const date = { day: "numeric", month: "short" };
    const day = formatted({ ...date, ...(hasHours ? hour : { year: "numeric" }) });
    const tick = formatted(hasHours ? hour : date);
    const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
    const once = (words) => words.map((word, place) => (word === words[place - 1] ? "" : word)); // of few days there are more lines
    const mark = (plot) => {
      const { left, top, width, height } = plot.bbox;
      plot.ctx.fillStyle = text;
      times.forEach((time, place) => {
        const over = plot.valToPos(time, "x", true);
        if (notes[place] && over >= left && over <= left + width) plot.ctx.fillRect(over, top, devicePixelRatio, height);
      });
    };
    const options = {
      hooks: { draw: [mark] },
      width: host.clientWidth,
      height,
      cursor: { focus: { prox: 24 } },
      scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(4, most)] } },
      tzDate: (time) => uPlot.tzDate(new Date(time * 1000), host.dataset.zone),
      series: [
        {
          label: labels[0],
          value: (_, time, __, place) => (place == null ? data.totals[0] : [day.format(time * 1000), notes[place]].filter(Boolean).join(": ")),
        },
        ...NAMES.map((name, line) => ({
          label: labels[data.columns.indexOf(name)],
          stroke: lines[line],
          width: name === "before" ? 1.5 : 2.5,
          dash: DASHES[line],
          points: { show: times.length === 1 },
          value: (_, count, __, place) => written(place == null ? data.totals[line + 1] : count),
        })).slice(-shown.length),
      ],
      axes: [
        { ...axis, values: (_, splits) => once(splits.map((time) => tick.format(time * 1000))), space: 80 },
        { ...axis, values: (_, splits) => splits.map((count) => (Number.isInteger(count) ? numbers.format(count) : "")), size: 64 },
      ],
    };
    host.replaceChildren();
    return new uPlot(options, [times, ...columns], host);
  };

  const start = async (host) => {
    const charts = host.closest(".readtrack-charts");
    try {
      const data = JSON.parse(host.dataset.values);
      const { bottom } = charts.getBoundingClientRect();
      host.hidden = false;
      let plot = draw(host, data);
      charts.classList.add("readtrack-is-drawn");
      await null; // uPlot sets its sizes in a microtask
      // As high as the drawing of the server with its legend, so that nothing below moves.
      const height = Math.max(160, Math.round(280 + bottom - charts.getBoundingClientRect().bottom));
      plot.setSize({ width: host.clientWidth, height });
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

  document.querySelectorAll(".readtrack-live-chart").forEach(start);
  document.querySelectorAll(".readtrack-now").forEach((place) => {
    setInterval(renew, 30_000, place);
    document.addEventListener("visibilitychange", () => renew(place));
  });
})();

// Tells how long the page's text was looked at by somebody who does more than scroll, and that it was read to its end.
((page, ask, readtrack, show) => {
  if (readtrack.reads || navigator.webdriver) return;
  readtrack.reads = true;
  const minutes = 60;
  let mark, text, seconds, sent, next, alone, isRead, ended, kinds;
  const find = selector => {
    try {
      return page.querySelector.call(document, selector);
    } catch {} // no selector
  };
  const check = leaving => {
    if (!mark || kinds.size < 2) return;
    const reads = ended && seconds >= mark.dataset.read;
    if (reads > isRead || seconds >= next || (leaving && seconds > sent)) {
      if (seconds >= next) next *= 2;
      isRead = reads;
      sent = seconds;
      readtrack.tell(`${seconds} ${+reads}`);
    }
  };
  const begin = token => {
    // The mark has the end of the page's token, which no visitor can know.
    mark = token && find(`[data-of="${token.slice(-8)}"]`);
    text = mark && (find(mark.dataset.text) || mark);
    seconds = alone = 0;
    sent = -1;
    next = 5 * minutes;
    isRead = ended = false;
    kinds = new Set();
  };
  const look = () => {
    if (!mark || ask("hidden") || !page.hasFocus.call(document) || alone++ >= 6 * minutes) return;
    seconds++;
    const { bottom } = text.getBoundingClientRect();
    ended ||= bottom > 0 && bottom <= innerHeight + 1;
    check();
  };
  const leave = () => check(true);
  readtrack.page = token => {
    leave();
    show(token);
    begin(token);
  };
  for (const kind of ["scroll", "pointermove", "pointerdown", "keydown"])
    addEventListener(kind, ({ isTrusted }) => isTrusted && (kinds.add(kind), (alone = 0)), { capture: true, passive: true });
  addEventListener("visibilitychange", () => ask("hidden") && leave(), true);
  addEventListener("pagehide", leave);
  setInterval(look, 1e3);
  begin(ask("currentScript").dataset.page);
})(Document.prototype, name => Reflect.get(Document.prototype, name, document), readtrack, readtrack.page);

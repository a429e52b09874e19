// Tells how long the page's text was looked at by somebody who does more than scroll, and that it was read to its end.
((page, ask, readtrack, show) => {
  if (readtrack.reads || navigator.webdriver) return;
  readtrack.reads = true;
  const minutes = 60;
  let mark, text, seconds, sent, next, alone, isRead, ended, kinds;
  const find = selector => page.querySelector.call(document, selector);
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
  const begin = () => {
    mark = find("[data-read]");
    text = mark && (find(mark.dataset.text || null) || mark);
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
    begin();
  };
  for (const kind of ["scroll", "pointermove", "pointerdown", "keydown"])
    addEventListener(kind, ({ isTrusted }) => isTrusted && (kinds.add(kind), (alone = 0)), { capture: true, passive: true });
  addEventListener("visibilitychange", () => ask("hidden") && leave(), true);
  addEventListener("pagehide", leave);
  setInterval(look, 1e3);
  begin();
})(Document.prototype, name => Reflect.get(Document.prototype, name, document), readtrack, readtrack.page);

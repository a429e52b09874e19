// Tells the server that this page is looked at, and fills in its counts and dots; again when the page comes back.
((page, ask) => {
  const script = ask("currentScript");
  if (Object.hasOwn(window, "readtrack")) return readtrack.page(script.dataset.page);
  let shown, url, from = ask("referrer"), due, timer, since = performance.timeOrigin;
  // Another site may frame this page, visible or not.
  const isFramed = () => {
    try {
      for (let frame = window; frame.origin == origin; frame = frame.parent)
        if (frame == frame.parent) return false;
    } catch {} // of another site
    return true;
  };
  const tell = (token, tries, state = "") =>
    isFramed() ||
    fetch(script.src, { method: "POST", body: [token, from, state, Date.now() - since].join("\n"), keepalive: true })
      .then(answer => (answer.ok ? answer.json() : answer.status < 500 ? {} : Promise.reject()))
      .then(answer => {
        if (token != shown) return;
        const { html, again } = answer;
        for (const key in html)
          page.querySelectorAll.call(document, `[data-rt="${key}"]`).forEach(place => (place.outerHTML = html[key]));
        readtrack.answered?.(answer, state);
        if (again && tries) tell(token, 0);
      })
      .catch(() => tries && token == shown && (timer = setTimeout(tell, 9e3 / tries, token, tries - 1)));
  const look = () => {
    if (!due || !shown || ask("prerendering") || ask("hidden")) return;
    due = false;
    clearTimeout(timer);
    tell(shown, 3);
  };
  window.readtrack = {
    page(token) {
      if (url) {
        from = url;
        since = Date.now();
      }
      url = location.href;
      due = shown = token;
      look();
    },
    tell(state) {
      tell(shown, 0, state);
    },
  };
  addEventListener("prerenderingchange", look, true);
  addEventListener("visibilitychange", look, true);
  addEventListener("pageshow", event => {
    if (event.persisted) due = since = Date.now();
    look();
  });
  readtrack.page(script.dataset.page);
  // Of the prototype, because `<img name="hidden">` in a comment takes the place of document.hidden.
})(Document.prototype, name => Reflect.get(Document.prototype, name, document));

// Tells the server that this page is looked at, and fills in its counts and dots; again when the page comes back.
((page, ask) => {
  let script = ask("currentScript");
  if (Object.hasOwn(window, "readtrack")) return readtrack.page(script.dataset.page);
  const { src, nonce } = script;
  let shown, url, from = ask("referrer"), due, timer, since = performance.timeOrigin;
  // Another site may frame this page, visible or not.
  const isFramed = () => {
    try {
      for (let frame = window; frame.origin == origin; frame = frame.parent)
        if (frame == frame.parent) return false;
    } catch {} // of another site
    return true;
  };
  // Not by HTML, which a policy with trusted types forbids.
  const make = ([name, attributes, ...content], space = "http://www.w3.org/1999/xhtml") => {
    space = attributes.xmlns || space;
    const element = page.createElementNS.call(document, space, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    element.append(...content.map(part => (typeof part == "string" ? part : make(part, space))));
    return element;
  };
  const tell = (token, tries, state = "") =>
    isFramed() ||
    fetch(src, { method: "POST", body: [token, from, state, Date.now() - since].join("\n"), keepalive: true })
      .then(answer => (answer.ok ? answer.json() : answer.status < 500 ? {} : Promise.reject()))
      .then(
        answer => {
          if (token != shown) return;
          const { elements, again } = answer;
          for (const key in elements)
            page.querySelectorAll
              .call(document, `[data-rt="${key}"]`)
              .forEach(place => place.replaceWith(make(JSON.parse(elements[key]))));
          readtrack.answered?.(answer, state);
          if (again && tries) tell(token, 0);
        },
        // Only without an answer: an error while the answer is shown would come again.
        () => tries && token == shown && (timer = setTimeout(tell, 9e3 / tries, token, tries - 1)),
      );
  const look = () => {
    if (!due || !shown || ask("prerendering") || ask("hidden")) return;
    due = false;
    clearTimeout(timer);
    tell(shown, 3);
  };
  window.readtrack = {
    page(token) {
      if (url) {
        // The tag of a swapped page may run twice, see below.
        if (token == shown && Date.now() - since < 1e3) return;
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
  // What swaps parts of a page may not run the scripts in them. Then this tag is gone, and the new one has to be made
  // again. Of the tags that run anyway, too, `page` shows only one.
  new MutationObserver(() => {
    const tag = !script.isConnected && page.querySelector.call(document, "script[data-page][src]");
    if (!tag) return;
    // First, because a policy with trusted types may forbid to make another one.
    script = tag;
    script = make(["script", { src: tag.src, nonce }]);
    Object.assign(script.dataset, tag.dataset);
    tag.replaceWith(script);
  }).observe(document, { childList: true, subtree: true });
  // Of the prototype, because `<img name="hidden">` in a comment takes the place of document.hidden.
})(Document.prototype, name => Reflect.get(Document.prototype, name, document));

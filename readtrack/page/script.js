// Tells the server that this page is looked at, and fills in its counts and dots; again when the page comes back.
((page, script) => {
  if (window.readtrack) return readtrack.page(script.dataset.page);
  let shown, url, from = page.referrer, due, timer;
  const tell = (token, tries, state = "") =>
    fetch(script.src, { method: "POST", body: token + "\n" + from + "\n" + state, keepalive: true })
      .then(answer => (answer.ok ? answer.json() : answer.status < 500 ? {} : Promise.reject()))
      .then(({ html, again }) => {
        if (token != shown) return;
        for (const key in html)
          page.querySelectorAll(`[data-rt="${key}"]`).forEach(place => (place.outerHTML = html[key]));
        if (again && tries) tell(token, 0);
      })
      .catch(() => tries && token == shown && (timer = setTimeout(tell, 9e3 / tries, token, tries - 1)));
  const look = () => {
    if (!due || !shown || page.prerendering || page.hidden) return;
    due = false;
    clearTimeout(timer);
    tell(shown, 3);
  };
  window.readtrack = {
    page(token) {
      if (url) from = url;
      url = location.href;
      shown = token || (page.querySelector("[data-page]") || script).dataset.page;
      due = true;
      look();
    },
    tell(state) {
      tell(shown, 0, state);
    },
  };
  page.addEventListener("prerenderingchange", look);
  page.addEventListener("visibilitychange", look);
  addEventListener("pageshow", event => {
    due ||= event.persisted;
    look();
  });
  readtrack.page(script.dataset.page);
})(document, document.currentScript);

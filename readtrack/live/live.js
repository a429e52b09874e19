// Keeps the dots of the page up to date while it is looked at: without a reload, and without asking the server for them
// unless something is new.
((page, ask, readtrack, show) => {
  const script = ask("currentScript");
  if (readtrack.watch) return readtrack.watch(script);
  const second = 1e3;
  // From one poll to the next. What a cache answers may be 6 seconds old.
  const every = 19 * second;
  // From one question for the reader's dots to the next.
  const gap = second / 2;
  // As many times as long while the tab is hidden, and at most after errors.
  const hidden = 6, longest = 32;
  // In the title behind our number, and invisible.
  const mark = "\u2060";
  const numbered = /^\(\d+\+?\)\u2060 /;
  let options, url, times, timer, channel, source, asking, answered, isDue;
  let asked = 0;
  let pause = 1, credentials = "omit";
  const isAsleep = () => ask("hidden") && !("title" in options || "badge" in options);

  // Asks for the reader's dots, soon.
  const refresh = () => {
    isDue = isAsleep();
    if (isDue || !url || asking) return;
    asking = setTimeout(() => {
      asking = 0;
      asked = Date.now();
      readtrack.tell("dots");
    }, Math.max(0, asked + gap - Date.now()));
  };
  const isOff = key => page.querySelector.call(document, `[data-rt="${key}"][hidden]`);
  const newer = (news, kind) => Object.keys(news[kind]).filter(key => !(news[kind][key] <= times?.[kind][key]));
  const check = news => {
    // A dot that is on stays on, whatever is published.
    if (newer(news, "dots").some(isOff) || newer(news, "numbers").length) refresh();
  };

  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(poll, every * pause * (ask("hidden") ? hidden : 1) * (1 - Math.random() / 5));
  };
  const poll = () => {
    clearTimeout(timer);
    if (!url || isAsleep()) return;
    listen();
    fetch(url, { credentials })
      .then(answer => (answer.ok ? answer.json() : Promise.reject()))
      .then(news => {
        pause = 1;
        check(news);
      })
      .catch(() => {
        pause = Math.min(pause * 2, longest);
        // Without cookies any cache may answer. Where everybody has to sign in, nobody gets through without them.
        credentials = credentials == "omit" ? "same-origin" : "omit";
      })
      .then(later);
  };

  // An event is the same as an answer to a poll, and only sooner. One that is missed is healed by the next poll.
  const listen = () => {
    if (!url || !options.events || ask("hidden") || source?.readyState < EventSource.CLOSED) return;
    source = new EventSource(`${options.events}?${options.dots}`);
    source.onmessage = ({ data }) => check(JSON.parse(data));
    source.onopen = poll;
  };

  const hush = () => source?.close();

  const stop = () => {
    url = "";
    hush();
  };

  const open = () => {
    if (channel) return;
    channel = new BroadcastChannel(new URL(script.src).pathname);
    // Whatever a message says, the reader has read something in another tab.
    channel.onmessage = refresh;
  };
  const close = () => {
    channel?.close();
    channel = null;
    hush();
  };
  const wake = () => {
    if (ask("hidden")) return hush();
    open();
    // What the reader has read on another device goes out as well.
    if (isDue || Date.now() - answered > every) refresh();
    times ? poll() : later();
  };

  const count = unread => {
    if ("title" in options) {
      const number = unread > 99 ? "99+" : unread;
      const title = ask("title").replace(numbered, "");
      Reflect.set(page, "title", unread ? `(${number})${mark} ${title}` : title, document);
    }
    if ("badge" in options) navigator.setAppBadge?.(unread).catch(() => {});
  };
  readtrack.answered = ({ news, reads }, state) => {
    if (reads && state != "dots") channel?.postMessage("");
    answered = Date.now();
    if (news) {
      times = JSON.parse(news);
      count(times.unread);
      listen();
    }
    // There is no reader. An answer that a proxy refused has no news at all.
    if (news === "") stop();
  };
  readtrack.watch = ({ dataset }) => {
    options = dataset;
    url = dataset.dots && `${dataset.news}?${dataset.dots}`;
    times = isDue = null;
    answered = Date.now();
    open();
    later();
  };
  readtrack.page = token => {
    stop();
    show(token);
  };
  addEventListener("visibilitychange", wake, true);
  addEventListener("focus", wake);
  addEventListener("pagehide", close);
  addEventListener("pageshow", ({ persisted }) => persisted && wake());
  readtrack.watch(script);
})(Document.prototype, name => Reflect.get(Document.prototype, name, document), readtrack, readtrack.page);

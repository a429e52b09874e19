// Keeps the line at the foot of the page up to date: what became of the last hits.
(panel => {
  const look = () =>
    document.hidden ||
    fetch(panel.dataset.hits)
      .then(answer => (answer.ok ? answer.text() : ""))
      .then(html => {
        for (const part of new DOMParser().parseFromString(html, "text/html").querySelectorAll("[id]")) {
          const here = document.getElementById(part.id);
          if (here.innerHTML != part.innerHTML) here.innerHTML = part.innerHTML;
        }
      })
      .catch(() => {}); // the next one may do
  panel.hidden = false;
  setInterval(look, 2000);
  document.addEventListener("visibilitychange", look);
  look();
})(document.querySelector("[data-hits]"));

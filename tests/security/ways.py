"""The ways in which a page can make its visitor's browser ask for an address: scripts, which know
`url` and may `add` HTML to their page.
"""

ADD = """const add = html => {
  const place = document.createElement("div");
  place.append(document.createRange().createContextualFragment(html));
  document.body.append(place);
};
const script = code => URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
"""

HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

# What no page of another origin may count by, in any browser and on any scheme.
PARTS = {
    "fetch": "fetch(url).catch(() => 0);",
    "fetch with cookies": "fetch(url, { credentials: 'include' }).catch(() => 0);",
    "fetch, no-cors": "fetch(url, { mode: 'no-cors', credentials: 'include' });",
    "fetch, no-cors, keepalive": "fetch(url, { mode: 'no-cors', keepalive: true });",
    "fetch, like a navigation": f"""fetch(url, {{ mode: "no-cors", credentials: "include",
      referrerPolicy: "no-referrer", headers: {{ Accept: "{HTML}", "Accept-Language": "" }} }});""",
    "fetch, headers of htmx": "fetch(url, { headers: { 'HX-Request': 'true' } }).catch(() => 0);",
    "fetch, headers of a navigation": """
      fetch(url, { headers: { "Upgrade-Insecure-Requests": "1" } }).catch(() => 0);
      fetch(url, { mode: "no-cors", headers: { "Upgrade-Insecure-Requests": "1" } });""",
    "fetch, part of the page": "fetch(url, { mode: 'no-cors', headers: { Range: 'bytes=0-' } });",
    "XMLHttpRequest": """const request = new XMLHttpRequest();
      request.open("GET", url); request.withCredentials = true; request.send();""",
    "EventSource": "new EventSource(url, { withCredentials: true });",
    "WebSocket": "new WebSocket(url.replace('http', 'ws'));",
    "worker": "new Worker(script(`fetch('${url}', { mode: 'no-cors', credentials: 'include' })`));",
    "worker, importScripts": "new Worker(script(`importScripts('${url}')`));",
    "worker, module": """
      new Worker(script(`import('${url}').catch(() => 0)`), { type: "module" });""",
    "shared worker": "new SharedWorker(script(`fetch('${url}', { mode: 'no-cors' })`));",
    "import()": "import(url).catch(() => 0);",
    "sendBeacon": "navigator.sendBeacon(url, 'x');",
    "ping": "add(`<a id=ping ping='${url}' href='#'>`); document.querySelector('#ping').click();",
    "link, preload as fetch": "add(`<link rel=preload as=fetch crossorigin href='${url}'>`);",
    "link, preload as document": "add(`<link rel=preload as=document href='${url}'>`);",
    "link, preload as image": "add(`<link rel=preload as=image href='${url}'>`);",
    "link, preload as script": "add(`<link rel=preload as=script href='${url}'>`);",
    "link, preload as style": "add(`<link rel=preload as=style href='${url}'>`);",
    "link, preload as font": "add(`<link rel=preload as=font crossorigin href='${url}'>`);",
    "link, preload as track": "add(`<link rel=preload as=track href='${url}'>`);",
    "link, modulepreload": "add(`<link rel=modulepreload href='${url}'>`);",
    "link, prefetch": "add(`<link rel=prefetch href='${url}'>`);",
    "link, prefetch as document": "add(`<link rel=prefetch as=document href='${url}'>`);",
    "link, prerender": "add(`<link rel=prerender href='${url}'>`);",
    "link, manifest": "add(`<link rel=manifest crossorigin=use-credentials href='${url}'>`);",
    "link, icon": "add(`<link rel=icon href='${url}'>`);",
    "link, stylesheet": "add(`<link rel=stylesheet href='${url}'>`);",
    "speculation rules": """for (const rule of ["prefetch", "prerender"]) {
      const rules = `{"${rule}": [{"eagerness": "immediate", "urls": ["${url}"]}]}`;
      add(`<script type=speculationrules>${rules}</` + "script>");
    }""",
    "style, import": "add(`<style>@import url('${url}')</style>`);",
    "style, background": "add(`<p style=\"background: url('${url}')\">text</p>`);",
    "style, font": """add(`<style>@font-face { font-family: f; src: url('${url}') }</style>
      <p style="font-family: f">text</p>`);""",
    "image": "add(`<img src='${url}'>`);",
    "image, crossorigin": "add(`<img crossorigin=use-credentials src='${url}'>`);",
    "image, srcset": "add(`<img srcset='${url} 1x' referrerpolicy=no-referrer>`);",
    "image, picture": "add(`<picture><source srcset='${url}'><img></picture>`);",
    "image, input": "add(`<input type=image src='${url}'>`);",
    "image, SVG": "add(`<svg><image href='${url}' width=9 height=9></image></svg>`);",
    "audio": "add(`<audio src='${url}' autoplay></audio>`);",
    "video": "add(`<video src='${url}' autoplay muted></video>`);",
    "video, poster": "add(`<video poster='${url}'></video>`);",
    "video, track": """add(`<video crossorigin><track default src='${url}'></video>`);
      document.querySelector("track").track.mode = "showing";""",
    "script": "add(`<script src='${url}'></` + 'script>');",
    "script, module": "add(`<script type=module src='${url}'></` + 'script>');",
    "form, POST into a frame": """
      add(`<iframe name=post></iframe><form method=post target=post action='${url}'></form>`);
      document.querySelector("form[method=post]").submit();""",
}

# Pages within the page. Browsers say by `Sec-Fetch-Dest` that a page is framed. On plain http
# nothing tells the request from one of a tab: the server counts it, and the script must not.
FRAMES = {
    "frame": "add(`<iframe src='${url}'></iframe>`);",
    "frame, hidden": "add(`<iframe hidden loading=eager src='${url}'></iframe>`);",
    "frame, without referrer": "add(`<iframe referrerpolicy=no-referrer src='${url}'></iframe>`);",
    "frame, sandbox": "add(`<iframe sandbox src='${url}'></iframe>`);",
    "frame, sandbox with scripts": "add(`<iframe sandbox=allow-scripts src='${url}'></iframe>`);",
    "frame, sandbox with origin": """
      add(`<iframe sandbox="allow-scripts allow-same-origin" src='${url}'></iframe>`);""",
    "frame, srcdoc": "add(`<iframe srcdoc=\"<iframe src='${url}'></iframe>\"></iframe>`);",
    "frame, refresh": """
      add(`<iframe srcdoc=\"<meta http-equiv=refresh content='0;url=${url}'>\"></iframe>`);""",
    "frame, frameset": """
      add(`<iframe srcdoc=\"<frameset><frame src='${url}'></frameset>\"></iframe>`);""",
    "frame, form": """add(`<iframe name=get></iframe><form target=get action='${url}'></form>`);
      document.querySelector("form[target=get]").submit();""",
    "frame, location": "add(`<iframe name=go></iframe>`); frames.go.location = url;",
    "frame, redirect": "add(`<iframe src='/redirect/?to=${encodeURIComponent(url)}'></iframe>`);",
    "object": "add(`<object type='text/html' data='${url}'></object>`);",
    "object, without type": "add(`<object data='${url}'></object>`);",
    "embed": "add(`<embed type='text/html' src='${url}'>`);",
}

# A tab that shows the page counts, whoever sent it there.
VISITS = {
    "link on another site": "add(`<a id=link href='${url}'>`); document.querySelector('#link').click();",
    "link without referrer": """
      add(`<a id=link rel=noreferrer href='${url}'>`); document.querySelector("#link").click();""",
    "form": "add(`<form action='${url}'></form>`); document.querySelector('form').submit();",
    "redirect": """add(`<a id=link href='/redirect/?to=${encodeURIComponent(url)}'>`);
      document.querySelector("#link").click();""",
    "window.open": "open(url);",
}

# What the site's own pages may do.
OWN = {
    "fetch": "fetch(url);",
    "fetch by htmx": "fetch(url, { headers: { 'HX-Request': 'true' } });",
    "fetch by Turbo": """
      fetch(url, { headers: { "Turbo-Frame": "page", Accept: "text/html, application/xhtml+xml" } });""",
    "fetch by Unpoly": "fetch(url, { headers: { 'X-Up-Version': '3.0.0' } });",
    "XMLHttpRequest": """const request = new XMLHttpRequest(); request.open("GET", url);
      request.setRequestHeader("X-Requested-With", "XMLHttpRequest"); request.send();""",
    "frame": "add(`<iframe src='${url}'></iframe>`);",
    "frame, srcdoc": "add(`<iframe srcdoc=\"<iframe src='${url}'></iframe>\"></iframe>`);",
}

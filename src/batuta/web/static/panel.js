// The pages work without this script. It filters while the reader types, follows changes, opens forms as dialogs, and adds keys.

const $ = (id) => document.getElementById(id);
const folded = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

// Filter: hide the rows that do not match. The page's address contains the filter, so that a view can be bookmarked.

const form = $("filtro");
const troubled = new Set(["stale", "failing", "degraded"]);

function filter() {
  const { q, estado, categoria } = form.elements;
  const words = folded(q.value).split(/\s+/).filter(Boolean);
  const rows = [...document.querySelectorAll("tr[data-text]")];
  for (const row of rows) {
    row.hidden = !(
      words.every((word) => row.dataset.text.includes(word)) &&
      (!estado.value || row.dataset.state === estado.value || (estado.value === "problema" && troubled.has(row.dataset.state))) &&
      (!categoria.value || row.dataset.category === categoria.value)
    );
  }
  const shown = rows.filter((row) => !row.hidden).length;
  const output = $("mostradas");
  output.value = output.dataset.form.replace("#", shown);
  $("nada").hidden = shown > 0;
  $("limpar").hidden = !(words.length || estado.value || categoria.value);
}

function rememberFilter() {
  const address = new URL(location.href);
  for (const { name, value } of [form.elements.q, form.elements.estado, form.elements.categoria]) {
    value ? address.searchParams.set(name, value) : address.searchParams.delete(name);
  }
  history.replaceState(null, "", address);
}

if (form) {
  const changed = () => { filter(); rememberFilter(); };
  for (const kind of ["input", "search"]) form.addEventListener(kind, changed); // Escape clears a search field and sends only "search"
  form.addEventListener("submit", (event) => { event.preventDefault(); changed(); });
  form.querySelector("button").hidden = true;
  $("limpar").addEventListener("click", (event) => {
    event.preventDefault();
    for (const field of form.elements) if (field.name) field.value = "";
    changed();
    form.elements.q.focus();
  });
  filter();
}

// Changes: the server pushes the changed parts of this page. Without a stream, the page fetches itself again at intervals.
// A hidden tab or a paused page receives no changes.

const every = Number(document.body.dataset.refresh) * 1000;
const pause = $("pausa");
const contact = $("contato");
let isPaused = false;
let fetchedAt = Date.now();
let isFetching = false;
let stream;
let hasStream = "EventSource" in window;
let isOver = false; // nothing on this page changes any more
let lostAt = 0;
const waiting = new Map(); // parts by id, while the reader selects text

const isSelecting = () => !getSelection().isCollapsed;

function follow() {
  const isWanted = every && hasStream && !isOver && !isPaused && !document.hidden;
  if (!isWanted) { stream?.close(); stream = undefined; }
  if (!isWanted || stream) return;
  stream = new EventSource(location.href);
  stream.addEventListener("open", () => { lostAt = 0; contact.hidden = true; });
  stream.addEventListener("message", (event) => {
    for (const [id, html] of Object.entries(JSON.parse(event.data))) { waiting.delete(id); waiting.set(id, html); }
    putWaiting();
  });
  stream.addEventListener("last", () => { isOver = true; follow(); });
  stream.addEventListener("error", () => {
    lostAt ||= Date.now();
    if (stream?.readyState === EventSource.CLOSED) { hasStream = false; stream = undefined; } // refused: fetch instead
  });
}

function putWaiting() {
  if (!waiting.size || isSelecting()) return;
  const parts = new DOMParser();
  keepPlace(() => {
    for (const [id, html] of waiting) {
      const isRow = /^<(tr|tbody)\b/.test(html);
      const fresh = parts.parseFromString(isRow ? `<table>${html}</table>` : html, "text/html").getElementById(id);
      replace($(id), fresh);
    }
  });
  waiting.clear();
}

async function refresh() {
  if (isFetching) return;
  isFetching = true;
  fetchedAt = Date.now();
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(10_000) });
    if (answer.redirected) return location.assign(answer.url); // the session ended: sign in, then return here
    if (!answer.ok) throw new Error(String(answer.status));
    put(new DOMParser().parseFromString(await answer.text(), "text/html"));
    contact.hidden = true;
  } catch {
    contact.hidden = false;
  } finally {
    isFetching = false;
  }
}

function put(fresh) {
  keepPlace(() => {
    for (const list of document.querySelectorAll("[data-live-rows]")) {
      const next = fresh.getElementById(list.id);
      if (next && ids(next) !== ids(list)) replace(list, next);
    }
    for (const old of document.querySelectorAll("[data-live]")) replace(old, fresh.getElementById(old.id));
  });
  contact.textContent = fresh.getElementById("contato").textContent;
}

function replace(old, fresh) {
  if (!old || !fresh || old.outerHTML === fresh.outerHTML) return;
  const opened = [...old.querySelectorAll("details")].map((each) => each.open);
  fresh.querySelectorAll("details").forEach((each, n) => { each.open ||= opened[n] ?? false; });
  const chosen = new Set([...old.querySelectorAll("input[type=checkbox]:checked")].map((each) => each.value));
  for (const each of fresh.querySelectorAll("input[type=checkbox]")) each.checked ||= chosen.has(each.value);
  old.replaceWith(document.adoptNode(fresh));
}

function keepPlace(change) {
  const focused = document.activeElement;
  change();
  if (form) filter();
  if (!focused.isConnected) again(focused)?.focus({ preventScroll: true });
}

const ids = (list) => [...list.children].map((row) => row.id).join();

function again(element) {
  if (element.id) return $(element.id);
  const href = element.getAttribute("href");
  return href && document.querySelector(`a[href="${CSS.escape(href)}"]`);
}

function look() {
  putWaiting();
  if (stream && lostAt && Date.now() - lostAt > 8000) contact.hidden = false;
  if (!hasStream && !isPaused && !document.hidden && !isSelecting() && Date.now() - fetchedAt >= every) refresh();
}

if (every) {
  setInterval(look, 1000);
  document.addEventListener("visibilitychange", () => { follow(); look(); });
  follow();
  pause.hidden = false;
  pause.addEventListener("click", () => {
    isPaused = !isPaused;
    pause.toggleAttribute("data-paused", isPaused);
    pause.lastElementChild.textContent = isPaused ? pause.dataset.resume : pause.dataset.pause;
    pause.querySelector("use").setAttribute("href", isPaused ? "#i-running" : "#i-held");
    follow();
  });
}

// Keys: a key presses the element with this data-key, or focuses it if it is a field. Escape leaves a field. While a form is being
// sent, keys do nothing, so that a second press does not send the form twice.

let isSending = false;
document.addEventListener("submit", (event) => { isSending = event.target.method === "post" && !event.defaultPrevented; });
addEventListener("pageshow", () => { isSending = false; });
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || isSending || document.querySelector("dialog[open]")) return;
  const field = event.target.closest("input, select, textarea");
  if (field) return event.key === "Escape" ? field.blur() : undefined;
  const found = event.key.length === 1 && document.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (!found) return;
  event.preventDefault();
  found.matches("input, select, textarea") ? found.focus() : found.click();
});

// Required fields: a field with data-missing says this text if it is empty when its form is sent. The browser focuses the field.

document.addEventListener("invalid", ({ target }) => {
  if (target.dataset.missing) target.setCustomValidity(target.validity.valueMissing ? target.dataset.missing : "");
}, true);
document.addEventListener("input", ({ target }) => { if (target.dataset?.missing) target.setCustomValidity(""); });

// Actions: a button opens the form of its action in a dialog. Without this script the button is a link to the same form.

async function openAction(address) {
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  if (answer.redirected && !answer.url.includes("/acoes/")) return location.assign(answer.url);
  const sheet = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("section.sheet");
  if (!sheet) return location.assign(address);
  const dialog = document.createElement("dialog");
  dialog.className = "sheet";
  dialog.setAttribute("aria-labelledby", "acao-titulo");
  dialog.append(...document.adoptNode(sheet).childNodes);
  dialog.addEventListener("click", (event) => { if (event.target.closest(".cancel")) { event.preventDefault(); dialog.close(); } });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  (dialog.querySelector("input:not([type=hidden]), textarea, select") ?? dialog.querySelector("button.main"))?.focus();
}

document.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  const opener = event.target.closest("[data-action]");
  if (!opener) return;
  event.preventDefault();
  if (opener.href) return openAction(opener.href);
  const chosen = new URLSearchParams(new FormData(opener.form));
  openAction(`${opener.formAction}?${chosen}`);
});

// Uploads: a form with a file shows how many bytes were sent. If the server refuses the file, the form appears again and
// keeps the chosen file.

document.addEventListener("submit", (event) => {
  const form = event.target, file = form.querySelector("input[type=file]");
  if (!file?.files.length || event.defaultPrevented) return;
  event.preventDefault();
  upload(form, file);
});

function upload(form, file) {
  const shown = form.querySelector(".upload"), bar = shown.querySelector("progress"), says = shown.querySelector("[role=status]");
  const language = document.documentElement.lang, button = form.querySelector("button[type=submit]");
  const size = new Intl.NumberFormat(language, { style: "unit", unit: "megabyte", maximumFractionDigits: 1 });
  const share = new Intl.NumberFormat(language, { style: "percent" });
  const request = new XMLHttpRequest();
  const stopped = () => { isSending = false; button.disabled = false; };
  const failed = () => { stopped(); says.textContent = shown.dataset.failed; };
  request.upload.addEventListener("progress", ({ loaded, total }) => {
    bar.value = loaded / total;
    const parts = [size.format(loaded / 1e6), size.format(total / 1e6), share.format(loaded / total)];
    says.textContent = parts.reduce((text, part, n) => text.replace(`#${n + 1}`, part), shown.dataset.sending);
  });
  request.upload.addEventListener("load", () => { bar.removeAttribute("value"); says.textContent = shown.dataset.reading; });
  request.addEventListener("error", failed);
  request.addEventListener("abort", stopped);
  request.addEventListener("load", () => {
    if (request.status === 200) return location.assign(JSON.parse(request.responseText).to);
    const again = new DOMParser().parseFromString(request.responseText, "text/html").querySelector("section.sheet");
    if (!again) return failed();
    const fresh = document.adoptNode(again);
    fresh.querySelector("input[type=file]").replaceWith(file);
    (form.closest("dialog") ?? form.closest(".sheet")).replaceChildren(...fresh.childNodes);
    stopped();
  });
  form.closest("dialog")?.addEventListener("close", () => request.abort());
  button.disabled = true;
  shown.hidden = false;
  request.open("POST", form.action);
  request.setRequestHeader("Accept", "application/json, text/html");
  request.send(new FormData(form));
}

// Keyboard: / filters, j and k move, Enter opens, x selects, Ctrl-K goes to a page, ? shows the keys.

const rowsOf = () => [...document.querySelectorAll("main tbody tr, main .findings > li")].filter((row) => row.checkVisibility());
let at = -1;

function move(step) {
  const rows = rowsOf();
  if (!rows.length) return;
  at = Math.max(0, Math.min(rows.length - 1, at + step));
  const act = rows[at].matches("li") && rows[at].querySelector(".acts a, .acts button");
  (act || rows[at].querySelector("a, button, input"))?.focus();
  rows[at].scrollIntoView({ block: "nearest" });
}

function showDialog(id) {
  const dialog = $(id);
  if (dialog && !dialog.open) { dialog.showModal(); dialog.querySelector("input")?.select(); }
}

document.querySelector(".menu [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

const pages = $("paginas");
pages?.querySelector("input").addEventListener("input", (event) => {
  const words = folded(event.target.value);
  for (const link of pages.querySelectorAll("li")) link.hidden = !folded(link.textContent).includes(words);
});
pages?.querySelector("input").addEventListener("keydown", (event) => {
  if (event.key === "Enter") pages.querySelector("li:not([hidden]) a")?.click();
});

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    return showDialog("paginas");
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox]), select, textarea, dialog")) return;
  if (event.key === "/") {
    const search = document.querySelector("main input[type=search]");
    if (search) { event.preventDefault(); search.select(); }
  } else if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "x") document.activeElement.closest("tr")?.querySelector("input[type=checkbox]")?.click();
});

document.addEventListener("click", (event) => event.target.closest("[data-close]")?.closest("dialog")?.close());
const menu = $("menu");
if (menu) { menu.hidden = false; menu.addEventListener("click", () => showDialog("paginas")); }
const help = $("ajuda");
if (help) { help.hidden = false; help.addEventListener("click", () => showDialog("teclas")); }

// Commands: a click copies a command. Without HTTPS there is no clipboard API, so the text is selected and then copied.

document.addEventListener("click", async (event) => {
  const command = event.target.closest("code.command");
  if (!command || !getSelection().isCollapsed) return;
  try {
    await navigator.clipboard.writeText(command.textContent);
  } catch {
    getSelection().selectAllChildren(command);
    document.execCommand("copy");
  }
  command.dataset.copied = "";
  setTimeout(() => { delete command.dataset.copied; }, 1500);
});

// Elements, and requests to /api. HTML that is inserted was made by the server from escaped text and converted formulas.

export const $ = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "html") made.innerHTML = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value !== undefined) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function errorOf(error, retry) {
  return element("p", { class: "error", role: "alert" }, error.message, " ",
    retry ? element("button", { type: "button", onclick: retry }, "Retry") : null);
}

export const plural = (count, name, more = "") => `${count.toLocaleString("en")}${more} ${name}${count === 1 && !more ? "" : "s"}`;

export function dateOf(date) {
  const day = new Date(`${date}T12:00`);
  return /^\d{4}-\d\d-\d\d$/.test(date) && !isNaN(day) ? day.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" }) : date;
}

// The text of an element, each formula as its LaTeX between dollars.
export function textOf(node) {
  const copied = node.cloneNode(true);
  for (const formula of copied.querySelectorAll("[data-latex]")) formula.textContent = `$${formula.dataset.latex}$`;
  return copied.textContent.trim();
}

export async function ask(path, parameters, signal) {
  const answer = await fetch(`api/${path}?${new URLSearchParams(parameters)}`, { signal }).catch((error) => {
    throw error.name === "AbortError" ? error : new Error("The server does not answer. Is it still running?");
  });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(body.error || `The server answered ${answer.status}.`);
  return body;
}

export async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const holder = element("textarea", { class: "hidden" });
  holder.value = text;
  document.body.append(holder);
  holder.select();
  document.execCommand("copy"); // the only way on a page that came over plain HTTP
  holder.remove();
}

// Questions to the service that this page came from. A problem is thrown with its path, as the service tells it.
import { parse } from "./dom.js";

let token = sessionStorage.getItem("token") || "";
const needs = [];

export const onTokenNeeded = (listener) => needs.push(listener);
export function useToken(text) {
  token = text.trim();
  sessionStorage.setItem("token", token);
}

export class Problem extends Error {
  constructor(told) {
    super((told.path ? `${told.path}: ` : "") + told.detail);
    this.told = told;
  }
}

async function ask(path, options = {}) {
  const headers = { ...(options.headers || {}), ...(token ? { authorization: `Bearer ${token}` } : {}) };
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ detail: "the service does not answer" });
  }
  if (answer.status === 401) needs.forEach((one) => one());
  if (!answer.ok) throw new Problem(await read(answer).catch(() => ({ detail: `status ${answer.status}` })));
  return answer;
}

const read = async (answer) => parse(await answer.text());

export const get = async (path) => read(await ask(path));
export const remove = (path) => ask(path, { method: "DELETE" });

// `document` is text as somebody wrote it, or data.
export async function post(path, document, options = {}) {
  const isText = typeof document === "string";
  const isYaml = isText && !document.trimStart().startsWith("{");
  const answer = await ask(path, {
    method: "POST",
    body: isText ? document : JSON.stringify(document),
    headers: { "content-type": isYaml ? "application/yaml" : "application/json" },
    ...options,
  });
  return read(answer);
}

// Server-sent events by fetch: EventSource could not carry a token.
export async function follow(path, told) {
  const reader = (await ask(path)).body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "", last = null;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return last;
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const data = event.split("\n").find((line) => line.startsWith("data: "));
      if (data) told((last = parse(data.slice(6))));
    }
  }
}

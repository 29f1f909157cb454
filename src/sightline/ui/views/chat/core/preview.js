// @ts-check
/** A summary of the next send: what its body consists of, and how much of each. */

/** @typedef {{ label: string, count: number, size: number }} Share */

/**
 * Where each dialect keeps its messages, its system prompt and its tools.
 * @type {Record<string, { messages: string, system: string, tools: string }>}
 */
const PLACES = {
  "openai-chat": { messages: "messages", system: "", tools: "tools" },
  "openai-responses": { messages: "input", system: "instructions", tools: "tools" },
  anthropic: { messages: "messages", system: "system", tools: "tools" },
  gemini: { messages: "contents", system: "systemInstruction", tools: "tools" },
};
const ROLES = /** @type {Record<string, string>} */ ({
  system: "System",
  developer: "System",
  user: "User",
  assistant: "Assistant",
  model: "Assistant",
  tool: "Tool results",
  function: "Tool results",
});

/**
 * What a body is made of, in its own order: system, the messages by role, tools, and the rest as options.
 * @param {string} body
 * @param {string} dialect
 * @returns {Share[]}
 */
export function outline(body, dialect) {
  const read = parseObject(body);
  if (!read) return [];
  const places = PLACES[dialect] ?? PLACES["openai-chat"];
  /** @type {Map<string, Share>} */
  const shares = new Map();
  const add = (/** @type {string} */ label, /** @type {unknown} */ value) => {
    const share = shares.get(label) ?? { label, count: 0, size: 0 };
    shares.set(label, { label, count: share.count + 1, size: share.size + JSON.stringify(value ?? null).length });
  };
  if (places.system && read[places.system] != null) add("System", read[places.system]);
  const messages = read[places.messages];
  for (const each of Array.isArray(messages)
    ? messages
    : typeof messages === "string"
      ? [{ role: "user", content: messages }]
      : [])
    add(ROLES[each?.role] ?? kindOf(each), each);
  const tools = read[places.tools];
  for (const each of Array.isArray(tools) ? tools : []) add("Tools", each);
  for (const [name, value] of Object.entries(read))
    if (![places.messages, places.system, places.tools].includes(name)) add("Options", { [name]: value });
  return [...shares.values()];
}

/** @param {any} item of the Responses API, where calls and their results are items of their own */
function kindOf(item) {
  const type = String(item?.type ?? "");
  return type.endsWith("_output")
    ? "Tool results"
    : type === "reasoning" || type.endsWith("_call")
      ? "Assistant"
      : "Other";
}

/** @param {string} body @returns {Record<string, any> | null} */
function parseObject(body) {
  try {
    const value = JSON.parse(body);
    return value && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

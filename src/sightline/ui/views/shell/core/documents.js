// @ts-check
/** Request bodies that the user opens: which dialect one is written in. */

/**
 * The dialect and the model of a document; null where it is not JSON or looks like no request. What looks like none of
 * the built-in dialects is of the one whose messages it holds.
 * @param {string} text
 * @param {{ name: string, container: string }[]} dialects
 * @returns {{ dialect: string, model: string } | null}
 */
export function readDocument(text, dialects) {
  /** @type {unknown} */
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (Array.isArray(value)) return hasNumericRoles(value) ? { dialect: "raw", model: "" } : null;
  if (typeof value !== "object" || value === null) return null;
  const body = /** @type {Record<string, unknown>} */ (value);
  const model = typeof body.model === "string" ? body.model : "";
  if (Array.isArray(body.contents)) return { dialect: "gemini", model };
  if ("input" in body) return { dialect: "openai-responses", model };
  if (!Array.isArray(body.messages)) {
    const other = dialects.find((each) => Array.isArray(body[each.container]));
    return other ? { dialect: other.name, model } : null;
  }
  if ("requestOptions" in body || hasNumericRoles(body.messages)) return { dialect: "raw", model };
  // Anthropic requires max_tokens, and only there the system prompt stands beside the messages.
  const isAnthropic = "system" in body || ("max_tokens" in body && body.messages.some(hasBlocks));
  return { dialect: isAnthropic ? "anthropic" : "openai-chat", model };
}

/**
 * What keeps a document from being opened, as a sentence; empty before anything is written, null where nothing does.
 * @param {string} text
 * @param {string} dialect
 * @param {string} model
 * @returns {string | null}
 */
export function missingFrom(text, dialect, model) {
  if (text.trim() === "") return "";
  try {
    JSON.parse(text);
  } catch {
    return "This is not JSON.";
  }
  if (dialect === "") return "Choose the dialect.";
  return model === "" ? "Name the model that should answer." : null;
}

/** @param {unknown[]} messages */
function hasNumericRoles(messages) {
  return messages.length > 0 && messages.every((each) => typeof (/** @type {any} */ (each)?.role) === "number");
}

/** @param {any} message */
function hasBlocks(message) {
  const kinds = ["tool_use", "tool_result", "thinking", "document"];
  return (
    Array.isArray(message?.content) &&
    message.content.some((/** @type {any} */ part) => kinds.includes(part?.type) || part?.cache_control)
  );
}

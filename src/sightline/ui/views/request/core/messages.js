// @ts-check
/** A new message, as each dialect writes one. */

/**
 * @param {string} dialect
 * @param {"user" | "assistant"} role
 * @param {string} text
 * @returns {Record<string, unknown>}
 */
export function message(dialect, role, text) {
  switch (dialect) {
    case "openai-responses":
      return { type: "message", role, content: [{ type: role === "user" ? "input_text" : "output_text", text }] };
    case "gemini":
      return { role: role === "user" ? "user" : "model", parts: [{ text }] };
    case "raw":
      return { role: role === "user" ? 1 : 2, content: [{ type: 1, text }] };
    default:
      return { role, content: text };
  }
}

/** Which roles an item may be given. @param {string} dialect @returns {string[]} */
export function rolesOf(dialect) {
  switch (dialect) {
    case "anthropic":
    case "gemini":
      return ["user", "assistant"];
    case "openai-responses":
      return ["user", "assistant", "developer", "system"];
    case "raw":
      return ["user", "assistant", "system"];
    default:
      return ["user", "assistant", "developer", "system"];
  }
}

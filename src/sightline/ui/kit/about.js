// @ts-check
/** The server's version, address, models, clients and dialects, as `/api/about` reports them. */

import { signal } from "../vendor/preact.js";
import { get } from "./api.js";

/** @import { DialectShown, ShareFormat, PanelShown } from "../api-types.d.ts" */

/**
 * @typedef {{ name: string, command: string, env?: Record<string, string>, note?: string }} Client
 * @typedef {{ version: string, address: string, models: { id: string, provider: string, context_window?: number | null
 *   }[],
 *   providers: { name: string, ready: boolean, why?: string }[], clients: Client[], dialects: DialectShown[],
 *   places?: string[], toolsets?: string[], panels?: PanelShown[], formats?: ShareFormat[], program: string }} About
 */

const address = location.origin;

/** What holds without asking. @type {About} */
const USUAL = {
  version: "",
  address,
  program: "sightline",
  models: [],
  providers: [],
  dialects: [],
  clients: [
    { name: "Claude Code", command: "sightline run -- claude", env: { ANTHROPIC_BASE_URL: address } },
    { name: "Codex", command: "sightline run -- codex" },
    { name: "Gemini CLI", command: "sightline run -- gemini", env: { GOOGLE_GEMINI_BASE_URL: address } },
    { name: "opencode", command: "sightline run -- opencode" },
    { name: "OpenAI SDK", command: "", env: { OPENAI_BASE_URL: `${address}/v1` } },
    { name: "Anthropic SDK", command: "", env: { ANTHROPIC_BASE_URL: address } },
    { name: "Gemini SDK", command: "", env: { GOOGLE_GEMINI_BASE_URL: address } },
  ],
};

export const about = signal(USUAL);

/** What the server says of a dialect; undefined before it has answered. @param {string | null | undefined} name */
export const dialectOf = (name) => about.value.dialects.find((each) => each.name === name);

/** Ask the server; a server that does not say leaves what holds anyway. */
export async function loadAbout() {
  try {
    const response = await get("/api/about");
    about.value = { ...USUAL, ...response, clients: response.clients?.length ? response.clients : USUAL.clients };
  } catch {
    const health = await get("/api/health").catch(() => null);
    about.value = { ...USUAL, version: health?.version ?? "" };
  }
}
